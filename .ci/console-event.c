#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

/* The keys are not for this process, which shares the console while it presses them. */
static BOOL WINAPI ignore(DWORD event)
{
    (void)event;
    return TRUE;
}

/* Starts the thread by which the system tells a process of an event. Wine 8 does not do that for Ctrl-Break. */
static BOOL tell(DWORD pid, DWORD event)
{
    FARPROC routine = GetProcAddress(GetModuleHandleA("kernelbase"), "CtrlRoutine");
    HANDLE process = OpenProcess(PROCESS_ALL_ACCESS, FALSE, pid);
    return routine && process &&
           CreateRemoteThread(process, NULL, 0, (LPTHREAD_START_ROUTINE)(void (*)(void))routine,
                              (void *)(ULONG_PTR)event, 0, NULL);
}

/* Presses keys on the console of a process, for every process on it: console-event ctrl-c|ctrl-break PID */
int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "console-event ctrl-c|ctrl-break PID\n");
        return 2;
    }
    DWORD event = strcmp(arguments[1], "ctrl-break") == 0 ? CTRL_BREAK_EVENT : CTRL_C_EVENT;
    DWORD pid = strtoul(arguments[2], NULL, 10);
    FreeConsole();
    if (!AttachConsole(pid) || !SetConsoleCtrlHandler(ignore, TRUE) ||
        !(GenerateConsoleCtrlEvent(event, 0) || tell(pid, event))) {
        fprintf(stderr, "%s of %lu: error %lu\n", arguments[1], pid, GetLastError());
        return 1;
    }
    return 0;
}
