#include <windows.h>
#include <ntsecapi.h>

/* Random bytes for Rust's standard library, from the function that Wine has. */
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
    while (size > 0) {
        ULONG part = size < 1u << 30 ? (ULONG)size : 1u << 30;
        if (!RtlGenRandom(data, part))
            return FALSE;
        data += part;
        size -= part;
    }
    return TRUE;
}
