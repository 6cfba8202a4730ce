//! The release: the scripts in `packaging`, and the workflows that run them.
#![cfg(unix)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const TARGETS: [&str; 4] = [
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "aarch64-unknown-linux-musl",
    "x86_64-unknown-linux-musl",
];

fn packaging(script: &str) -> Command {
    Command::new(Path::new(ROOT).join("packaging").join(script))
}

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(file)).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn sum_file(dir: &Path, target: &str) -> PathBuf {
    dir.join(format!("polybook-{target}.tar.gz.sha256"))
}

fn describe(script: &str, dir: &Path) -> Output {
    let mut command = packaging(script);
    command.args(["1.2.3", "https://example.com/p/releases/download/v1.2.3"]);
    command.arg(dir).output().unwrap()
}

#[test]
fn a_missing_or_empty_checksum_ends_a_release() {
    for (script, used) in [("homebrew", &TARGETS[..]), ("pkgbuild", &TARGETS[2..])] {
        let dir = tempfile::tempdir().unwrap();
        let write = |target: &str, digit: usize| {
            let text = format!("{}  archive\n", digit.to_string().repeat(64));
            fs::write(sum_file(dir.path(), target), text).unwrap();
        };
        for (digit, target) in TARGETS.iter().enumerate() {
            write(target, digit);
        }
        let made = describe(script, dir.path());
        assert!(made.status.success(), "{}", stderr(&made));
        let text = String::from_utf8(made.stdout).unwrap();
        for target in used {
            let digit = TARGETS.iter().position(|one| one == target).unwrap();
            assert!(
                text.contains(&digit.to_string().repeat(64)),
                "{target}: {text}"
            );
        }
        for target in used {
            let file = sum_file(dir.path(), target);
            for content in [
                None,
                Some(""),
                Some("\n"),
                Some("sha256sum: no such file\n"),
            ] {
                match content {
                    None => fs::remove_file(&file).unwrap(),
                    Some(text) => fs::write(&file, text).unwrap(),
                }
                let refused = describe(script, dir.path());
                let told = stderr(&refused);
                assert_eq!(refused.status.code(), Some(1), "{script} {content:?}");
                assert!(refused.stdout.is_empty(), "{script} {content:?}");
                assert_eq!(told.lines().count(), 1, "{told}");
                assert!(told.contains(file.to_str().unwrap()), "{told}");
            }
            write(target, 0);
        }
    }
}

#[test]
fn the_manifests_of_windows_name_the_archive_and_its_checksum() {
    let dir = tempfile::tempdir().unwrap();
    for script in ["scoop", "winget"] {
        let refused = describe(script, dir.path());
        assert_eq!(refused.status.code(), Some(1), "{script}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let archive = "polybook-x86_64-pc-windows-msvc.zip";
    let sum = "0123456789abcdef".repeat(4);
    let file = dir.path().join(format!("{archive}.sha256"));
    fs::write(file, format!("{sum}  {archive}\n")).unwrap();
    let url = format!("https://example.com/p/releases/download/v1.2.3/{archive}");

    let made = describe("scoop", dir.path());
    assert!(made.status.success(), "{}", stderr(&made));
    let manifest: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let found = &manifest["architecture"]["64bit"];
    assert_eq!(
        (&found["url"], &found["hash"]),
        (&url.clone().into(), &sum.clone().into())
    );
    assert_eq!(manifest["homepage"], "https://example.com/p");

    let made = describe("winget", dir.path());
    assert!(made.status.success(), "{}", stderr(&made));
    for (kind, ending, has) in [
        ("version", "", "DefaultLocale: en-US".to_owned()),
        (
            "defaultLocale",
            ".locale.en-US",
            "PackageUrl: https://example.com/p".to_owned(),
        ),
        ("installer", ".installer", format!("InstallerUrl: {url}")),
    ] {
        let name = format!("example.com.polybook{ending}.yaml");
        let text = fs::read_to_string(dir.path().join(&name)).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let schema = format!("winget-manifest.{kind}.1.12.0.schema.json");
        assert!(lines[0].ends_with(&schema), "{name}: {text}");
        let kind = format!("ManifestType: {kind}");
        for line in [
            "PackageVersion: 1.2.3",
            "ManifestVersion: 1.12.0",
            &kind,
            &has,
        ] {
            assert!(lines.contains(&line), "{name}: {line}: {text}");
        }
    }
    let installer = dir.path().join("example.com.polybook.installer.yaml");
    assert!(
        fs::read_to_string(installer)
            .unwrap()
            .contains(&sum.to_uppercase())
    );
}

/// Cargo.toml contains the address of the project, and all texts must use the same one.
#[test]
fn all_addresses_of_the_project_are_that_of_the_package() {
    let project = env!("CARGO_PKG_REPOSITORY").strip_prefix("https://github.com/");
    let project = project.unwrap();
    // Names of images have no capital letters.
    let image = project.to_lowercase();
    let addresses = [
        ("https://github.com/", project, 10),
        ("github:", project, 1),
        ("--repo ", project, 1),
        ("ghcr.io/", &image, 3),
    ];
    let texts = [
        "README.md",
        "docs/install.md",
        "python/README.md",
        "python/pyproject.toml",
    ];
    let texts = texts.map(read);
    for (before, wanted, least) in addresses {
        let named = texts.iter().flat_map(|text| text.split(before).skip(1));
        let named = named.map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_./".contains(c));
            rest[..end.unwrap_or(rest.len())].splitn(3, '/')
        });
        let named = named.filter_map(|mut parts| {
            let (owner, name) = (parts.next()?, parts.next()?);
            (name == "polybook").then(|| format!("{owner}/{name}"))
        });
        let named: Vec<_> = named.collect();
        assert!(named.len() >= least, "{before}: {named:?}");
        for one in named {
            assert_eq!(one, wanted, "{before}");
        }
    }
    if !project.starts_with("OWNER/") {
        assert!(!texts.concat().contains("OWNER"));
    }
}

#[test]
fn all_packages_have_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, package) in [
        ("Cargo.lock", "polybook"),
        ("fuzz/Cargo.lock", "polybook"),
        ("Cargo.lock", "polybook-python"),
        ("python/Cargo.toml", "polybook-python"),
    ] {
        let wanted = format!("name = \"{package}\"\nversion = \"{version}\"\n");
        assert!(read(file).contains(&wanted), "{file}: {package}");
    }
}

/// Directly after the installation, the program is not in the PATH.
#[test]
fn the_installer_and_the_document_add_manual_pages_by_the_same_line() {
    let line = "~/.local/bin/polybook man --dir ~/.local/share/man/man1";
    for file in ["dist-workspace.toml", "docs/install.md"] {
        assert!(read(file).contains(line), "{file}");
    }
}

#[test]
fn the_image_names_a_directory_for_temporary_files() {
    let text = read("packaging/Containerfile");
    let named = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    assert_eq!(named("FROM "), Some("scratch"));
    // The only directory in such an image.
    let made = named("WORKDIR ");
    assert!(made.is_some() && named("ENV TMPDIR=") == made, "{text}");
}

/// Returns the workflows with their names.
fn workflows() -> Vec<(String, String)> {
    let dir = Path::new(ROOT).join(".github/workflows");
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    let found: Vec<_> = files.map(read).collect();
    assert!(found.len() >= 3);
    found
}

/// Returns the jobs of a workflow: their names and their lines.
fn jobs(workflow: &str) -> Vec<(&str, Vec<&str>)> {
    let (_, text) = workflow.split_once("\njobs:\n").unwrap();
    let mut jobs: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let is_name = line.starts_with("  ") && !line.starts_with("   ") && line.ends_with(':');
        match jobs.last_mut() {
            _ if is_name => jobs.push((line.trim().trim_end_matches(':'), Vec::new())),
            Some((_, lines)) => lines.push(line.trim()),
            None => {}
        }
    }
    jobs
}

#[test]
fn actions_are_pinned_by_hash_and_jobs_have_the_permissions_that_they_need() {
    for (name, text) in workflows() {
        assert!(
            text.contains("\npermissions:\n  contents: read\n"),
            "{name} has no permissions"
        );
        let uses = |line: &&str| line.contains("uses: ") && !line.contains("uses: ./");
        for line in text.lines().filter(uses) {
            let (_, pin) = line.split_once('@').unwrap();
            let (hash, tag) = pin.split_once(" # v").unwrap_or((pin, ""));
            assert!(
                hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{name}: {line}"
            );
            assert!(!tag.is_empty(), "{name}: {line}");
        }
    }
}

#[test]
fn the_workflow_builds_what_the_installers_install() {
    let text = read("dist-workspace.toml");
    let (_, targets) = text.split_once("\ntargets = [").unwrap();
    let (targets, _) = targets.split_once(']').unwrap();
    let listed: BTreeSet<_> = targets.split('"').skip(1).step_by(2).collect();
    assert!(listed.len() >= 5, "{listed:?}");
    let all = workflows();
    let (_, release) = all.iter().find(|(name, _)| name == "release.yml").unwrap();
    let built = release.lines().map(str::trim);
    let built: BTreeSet<_> = built
        .filter_map(|line| line.strip_prefix("- target: "))
        .collect();
    assert_eq!(built, listed);

    let (_, version) = text.split_once("cargo-dist-version = \"").unwrap();
    let (version, _) = version.split_once('"').unwrap();
    let installed: BTreeSet<_> = release
        .match_indices("cargo-dist@")
        .map(|(at, name)| release[at + name.len()..].lines().next().unwrap())
        .collect();
    assert_eq!(installed, BTreeSet::from([version]));
}

#[test]
fn the_job_that_signs_runs_nothing_and_all_that_is_published_waits_for_it() {
    let all = workflows();
    let (_, release) = all.iter().find(|(name, _)| name == "release.yml").unwrap();
    let jobs = jobs(release);
    let has = |lines: &[&str], text: &str| lines.iter().any(|line| line.contains(text));
    let signing: Vec<_> = jobs
        .iter()
        .filter(|(_, lines)| has(lines, "attestations: write"))
        .collect();
    let [(signer, lines)] = &signing[..] else {
        panic!("{signing:?}");
    };
    assert!(!has(lines, "run:"), "{lines:?}");
    assert!(
        lines.contains(&"needs: [tests, archive, wheels, installers]"),
        "{lines:?}"
    );
    let publishing = jobs.iter().filter(|(name, lines)| {
        let rights = ["packages: write", "contents: write", "id-token: write"];
        name != signer && rights.iter().any(|right| has(lines, right))
    });
    let mut count = 0;
    for (name, lines) in publishing {
        // Steps that cannot be undone wait for all others.
        let needs = match *name {
            "pypi" => "needs: [release, container]".to_owned(),
            _ => format!("needs: {signer}"),
        };
        assert!(lines.contains(&&*needs), "{name}");
        // Jobs that may publish to PyPI run nothing else.
        assert!(
            !has(lines, "id-token: write") || !has(lines, "run:"),
            "{name}"
        );
        count += 1;
    }
    assert_eq!(count, 3);
}

/// Other features would require building the crates twice: for the program and for its tests.
#[test]
fn tests_ask_for_no_other_features_than_the_program() {
    let crates = |edges: &str| {
        let made = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--locked", "--prefix", "none"])
            .args(["--format", "{p} {f}", "--edges", edges])
            .current_dir(ROOT)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        let text = String::from_utf8(made.stdout).unwrap();
        let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
        lines.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (program, tests) = (crates("normal,build"), crates("normal,build,dev"));
    let others: Vec<_> = program.difference(&tests).collect();
    assert!(others.is_empty(), "{others:?}");
}
