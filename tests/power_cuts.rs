//! Tests the states in which a power cut can leave the disk, at each moment of a run and for each kind of output.
//!
//! The injector logs the calls of one run that change files. The test replays them on a model of a disk:
//!
//! - A call is atomic: the disk has all of its effect or none. Calls on names change directories, the others change
//!   files.
//! - A flush of a file makes all earlier calls on its bytes durable, but not its names. A flush of a directory makes
//!   all earlier calls on the names in it durable, but not the bytes of files.
//! - A power cut loses any subset of the earlier calls that are not durable. Later calls may survive although earlier
//!   ones are lost.
//!
//! For a directory, the test tries each subset of at most [`LOST`] of the last [`NAMES`] calls, and the loss of all
//! calls. For a file, it tries the loss of the first call, of the last one, and of all. It does not find faults that
//! need four lost calls, half a call, or bytes that nobody wrote.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{self, DirBuilder, File},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    common::ok,
    disk::{BOOKS, DATABASES, DIRECTORIES, EVALUATIONS, TEXTS, scene},
    faults::{Files, Scene, assert_same, injector, part, tops, write_engine},
};

/// The maximum number of lost calls on names, except in the state in which all are lost.
const LOST: usize = 3;

/// The number of last calls on names that may be lost.
const NAMES: usize = 10;

/// The number of states, for each command, in which the command is run again.
const RUNS: usize = 6;

/// A file or directory, independent of its names. The directory of the scene is 0.
type Node = usize;

/// A directory, and a name in it.
type Name = (Node, String);

/// The file or directory that each name denotes.
type Names = BTreeMap<Name, Node>;

/// A call that changes names or a file, or that flushes a file or directory.
#[derive(Clone)]
enum Call {
    /// Names in one directory that the call changes: the node that each name denotes after the call, or `None` if the
    /// name is removed.
    Names(Vec<(Name, Option<Node>)>),
    Write(Node, usize, Vec<u8>),
    Truncate(Node, usize),
    Sync(Node),
}

/// The calls on the bytes of a file that a power cut loses, out of those that are not durable.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum LostBytes {
    Nothing,
    First,
    Last,
    All,
}

/// The contents of a file on the disk.
#[derive(Clone, Default)]
struct Bytes {
    durable: Vec<u8>,
    /// The calls that are not durable, in order.
    pending: Vec<Call>,
}

impl Bytes {
    fn after(&self, lost: LostBytes) -> Vec<u8> {
        let count = self.pending.len();
        let kept = match lost {
            LostBytes::Nothing => 0..count,
            LostBytes::First => 1.min(count)..count,
            LostBytes::Last => 0..count.saturating_sub(1),
            LostBytes::All => 0..0,
        };
        let mut bytes = self.durable.clone();
        for call in &self.pending[kept] {
            match call {
                Call::Write(_, offset, written) => {
                    let end = offset + written.len();
                    bytes.resize(end.max(bytes.len()), 0);
                    bytes[*offset..end].copy_from_slice(written);
                }
                Call::Truncate(_, length) => bytes.resize(*length, 0),
                Call::Names(_) | Call::Sync(_) => unreachable!("no call on bytes"),
            }
        }
        bytes
    }
}

/// The state of the disk while a command runs.
struct Disk {
    /// The durable names.
    names: Names,
    /// The calls on names that are not durable, in order.
    pending: Vec<Vec<(Name, Option<Node>)>>,
    directories: BTreeSet<Node>,
    bytes: BTreeMap<Node, Bytes>,
}

/// The current nodes of inodes.
struct Nodes {
    of_inode: HashMap<u64, Node>,
    count: usize,
}

impl Nodes {
    /// Adds a new file or directory. Its inode may have belonged to another node before.
    fn enter(&mut self, inode: u64) -> Node {
        self.of_inode.insert(inode, self.count);
        self.count += 1;
        self.count - 1
    }
}

impl Disk {
    /// Creates the state of a disk that contains the files of a directory, all of them durable.
    fn of(dir: &Path) -> (Disk, Nodes) {
        let mut nodes = Nodes {
            of_inode: HashMap::new(),
            count: 0,
        };
        let mut disk = Disk {
            names: Names::new(),
            pending: Vec::new(),
            directories: BTreeSet::new(),
            bytes: BTreeMap::new(),
        };
        let root = nodes.enter(fs::metadata(dir).unwrap().ino());
        disk.enter(root, dir, &mut nodes);
        (disk, nodes)
    }

    fn enter(&mut self, node: Node, path: &Path, nodes: &mut Nodes) {
        if !path.is_dir() {
            let durable = fs::read(path).unwrap();
            let pending = Vec::new();
            self.bytes.insert(node, Bytes { durable, pending });
            return;
        }
        self.directories.insert(node);
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let inner = nodes.enter(entry.metadata().unwrap().ino());
            let name = entry.file_name().into_string().unwrap();
            self.names.insert((node, name), inner);
            self.enter(inner, &entry.path(), nodes);
        }
    }

    /// Reads the calls that the injector logged.
    fn calls(&mut self, log: &[u8], nodes: &mut Nodes) -> Vec<Call> {
        let mut names = self.names.clone();
        let mut calls = Vec::new();
        let mut rest = log;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
            let line = std::str::from_utf8(&rest[..end]).unwrap();
            rest = &rest[end + 1..];
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: usize| words[word].parse::<u64>().unwrap();
            let known = |nodes: &Nodes, word: usize| nodes.of_inode.get(&number(word)).copied();
            let name = |nodes: &Nodes, word: usize| {
                (known(nodes, word).expect(line), words[word + 1].to_owned())
            };
            let call = match words[0] {
                "create" | "mkdir" => {
                    let name = name(nodes, 1);
                    let node = nodes.enter(number(3));
                    if words[0] == "mkdir" {
                        self.directories.insert(node);
                    } else {
                        self.bytes.insert(node, Bytes::default());
                    }
                    Call::Names(vec![(name, Some(node))])
                }
                "unlink" => Call::Names(vec![(name(nodes, 1), None)]),
                "rename" | "link" | "exchange" => {
                    let (from, to) = (name(nodes, 1), name(nodes, 3));
                    assert_eq!(from.0, to.0, "{line}: another directory");
                    let moved = names.get(&from).copied();
                    assert!(moved.is_some(), "{line}: an unknown name");
                    let left = match words[0] {
                        "rename" => None,
                        "link" => moved,
                        _ => names.get(&to).copied(),
                    };
                    Call::Names(vec![(to, moved), (from, left)])
                }
                "write" => {
                    let (bytes, after) = rest.split_at(number(3) as usize);
                    rest = &after[1..];
                    // A file that has no name is lost in every state.
                    let Some(node) = known(nodes, 1) else {
                        continue;
                    };
                    Call::Write(node, number(2) as usize, bytes.to_vec())
                }
                "truncate" => {
                    let Some(node) = known(nodes, 1) else {
                        continue;
                    };
                    Call::Truncate(node, number(2) as usize)
                }
                "sync" => {
                    let Some(node) = known(nodes, 1) else {
                        continue;
                    };
                    Call::Sync(node)
                }
                _ => panic!("{line}"),
            };
            if let Call::Names(changes) = &call {
                change(&mut names, changes);
            }
            calls.push(call);
        }
        calls
    }

    /// Applies a call to the state.
    fn make(&mut self, call: Call) {
        match call {
            Call::Names(changes) => self.pending.push(changes),
            Call::Write(node, ..) | Call::Truncate(node, _) => {
                self.bytes.entry(node).or_default().pending.push(call);
            }
            Call::Sync(node) if self.directories.contains(&node) => {
                let of_node = |changes: &mut Vec<(Name, _)>| changes[0].0.0 == node;
                for changes in self.pending.extract_if(.., of_node) {
                    change(&mut self.names, &changes);
                }
            }
            Call::Sync(node) => {
                let bytes = self.bytes.entry(node).or_default();
                bytes.durable = bytes.after(LostBytes::Nothing);
                bytes.pending.clear();
            }
        }
    }

    /// Returns the possible states of the names after a power cut, each with the number of calls that are lost.
    fn names_after_cut(&self) -> Vec<(Names, usize)> {
        let count = self.pending.len();
        let first = count.saturating_sub(NAMES);
        let mut lost: Vec<Vec<usize>> = vec![Vec::new()];
        let mut longest = lost.clone();
        for _ in 0..LOST {
            let longer = longest.iter().flat_map(|set| {
                let next = set.last().map_or(first, |last| last + 1);
                (next..count).map(move |call| [&set[..], &[call]].concat())
            });
            longest = longer.collect();
            lost.extend_from_slice(&longest);
        }
        if count > LOST {
            lost.push((0..count).collect());
        }
        let after = |lost: Vec<usize>| {
            let mut names = self.names.clone();
            for (call, changes) in self.pending.iter().enumerate() {
                if !lost.contains(&call) {
                    change(&mut names, changes);
                }
            }
            (names, lost.len())
        };
        lost.into_iter().map(after).collect()
    }

    /// Returns the file or directory that a name of the scene's directory denotes, and everything inside it.
    fn tree(&self, names: &Names, top: &Path) -> Vec<(PathBuf, Node)> {
        let name = (0, top.to_str().unwrap().to_owned());
        let mut tree: Vec<_> = names
            .get(&name)
            .map(|node| (top.to_owned(), *node))
            .into_iter()
            .collect();
        let mut next = 0;
        while next < tree.len() {
            let (path, node) = tree[next].clone();
            let inner = names.range((node, String::new())..(node + 1, String::new()));
            tree.extend(inner.map(|((_, name), node)| (path.join(name), *node)));
            next += 1;
        }
        tree
    }

    /// Returns the contents of the files of a tree. The file `lost` loses calls. Directories have empty contents.
    fn files(&self, tree: &[(PathBuf, Node)], lost: Option<(Node, LostBytes)>) -> Files {
        let of_node = |node: Node| {
            let lost = lost.filter(|lost| lost.0 == node);
            let bytes = self.bytes.get(&node);
            bytes.map_or_else(Vec::new, |bytes| {
                bytes.after(lost.map_or(LostBytes::Nothing, |lost| lost.1))
            })
        };
        let entries = tree
            .iter()
            .map(|(path, node)| (path.clone(), of_node(*node)));
        entries.collect()
    }

    /// Replaces the contents of a directory by those of the disk after a power cut.
    fn restore(&self, dir: &Path, names: &Names, lost: LostBytes) {
        fs::remove_dir_all(dir).unwrap();
        fs::create_dir(dir).unwrap();
        let tops = names.keys().filter(|(parent, _)| *parent == 0);
        for (path, node) in tops.flat_map(|(_, top)| self.tree(names, Path::new(top))) {
            match self.bytes.get(&node) {
                Some(bytes) => fs::write(dir.join(path), bytes.after(lost)).unwrap(),
                // A run recognizes temporary directories by this mode.
                None => {
                    let path = dir.join(path);
                    DirBuilder::new().mode(0o700).create(&path).unwrap();
                    // The next run comes later than a minute after a power cut. Only then, it removes an empty
                    // temporary directory.
                    let long_ago = SystemTime::now() - Duration::from_secs(3600);
                    File::open(&path).unwrap().set_modified(long_ago).unwrap();
                }
            }
        }
    }
}

fn change(names: &mut Names, changes: &[(Name, Option<Node>)]) {
    for (name, node) in changes {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}

/// A run of a command whose calls were logged.
struct Run<'a> {
    scene: &'a Scene,
    /// The files after the run.
    new: Files,
    /// Whether an old directory is renamed before the new one gets its name, instead of exchanging both in one step.
    is_in_steps: bool,
}

impl Run<'_> {
    /// Checks all states after a power cut. `is_over` means that the program had ended before.
    fn check(&self, disk: &Disk, moment: &str, is_over: bool) {
        let mut judged = HashMap::new();
        for (names, lost) in disk.names_after_cut() {
            for top in tops(&self.new).chain(tops(&self.scene.before)) {
                let tree = disk.tree(&names, top);
                let pending = |node: &Node| {
                    disk.bytes
                        .get(node)
                        .is_some_and(|bytes| !bytes.pending.is_empty())
                };
                let mut cases = vec![None];
                if lost < LOST {
                    let nodes = tree.iter().map(|(_, node)| *node).filter(pending);
                    cases.extend(nodes.flat_map(|node| {
                        [LostBytes::First, LostBytes::Last, LostBytes::All]
                            .map(|lost| Some((node, lost)))
                    }));
                }
                for case in cases {
                    let is_right = *judged.entry((top, tree.clone(), case)).or_insert_with(|| {
                        let found = disk.files(&tree, case);
                        let is_old = found == part(&self.scene.before, top);
                        found == part(&self.new, top)
                            || !is_over
                                && (is_old || found.is_empty() && self.is_aside(disk, &names, top))
                    });
                    assert!(
                        is_right,
                        "{}, power cut {moment}: {} is {tree:?}, lost {case:?} of {:?}",
                        self.scene.line,
                        top.display(),
                        disk.pending
                    );
                }
            }
        }
    }

    /// Returns `true` if the complete old directory exists under the name from which the next run restores it.
    fn is_aside(&self, disk: &Disk, names: &Names, top: &Path) -> bool {
        let old = part(&self.scene.before, top);
        let prefix = format!(".{}.", top.display());
        let mut asides = names.keys().filter(|(parent, name)| {
            *parent == 0 && name.starts_with(&prefix) && name.ends_with(".old")
        });
        self.is_in_steps
            && asides.any(|(_, name)| {
                let found = disk.files(&disk.tree(names, Path::new(name)), None);
                found.values().eq(old.values())
            })
    }

    /// Runs the command again after a power cut.
    fn go_on(&self, disk: &Disk, moment: &str, number: usize) {
        let states = disk.names_after_cut();
        // In the first state no call is lost, in the last one all are.
        let (names, _) = &states[(states.len() - 1) * (number % 3) / 2];
        for lost in [LostBytes::First, LostBytes::All] {
            disk.restore(&self.scene.dir(), names, lost);
            let case = format!("{}, again after a power cut {moment}", self.scene.line);
            assert_same(&case, &self.scene.run_soundly(&case), &self.new);
        }
    }
}

/// Checks the states after power cuts during a run of a command. Returns the number of moments at which the power was
/// cut.
fn survives_power_cuts(scene: &Scene, kind: &str) -> usize {
    let Some(injector) = injector() else { return 1 };
    scene.restore();
    let (mut disk, mut nodes) = Disk::of(&scene.dir());
    let outcome = scene.run(injector, kind, 0);
    let error = String::from_utf8_lossy(&outcome.output.stderr);
    assert!(outcome.output.status.success(), "{}: {error}", scene.line);
    let calls = disk.calls(&fs::read(scene.log()).unwrap(), &mut nodes);
    let run = Run {
        scene,
        new: outcome.files,
        is_in_steps: kind == "log in steps",
    };
    // Between these calls, no output becomes visible or durable.
    let is_moment = |call: &Call| match call {
        Call::Names(changes) => changes.len() > 1 || changes[0].1.is_none(),
        Call::Sync(_) => true,
        Call::Write(..) | Call::Truncate(..) => false,
    };
    let moments = 2 + calls.iter().filter(|call| is_moment(call)).count();
    let every = moments.div_ceil(RUNS);
    let mut number = 0;
    let count = calls.len();
    for (done, call) in calls.into_iter().enumerate() {
        let is_moment = is_moment(&call);
        if is_moment {
            let moment = format!("before call {done} of {count}");
            run.check(&disk, &moment, false);
            if number % every == 0 {
                run.go_on(&disk, &moment, number / every);
            }
            number += 1;
        }
        disk.make(call);
    }
    run.check(&disk, "after the run", true);
    // After the run, the model contains the files that are in the file system.
    let mut whole = Files::new();
    let (names, _) = &disk.names_after_cut()[0];
    for top in tops(&run.new) {
        whole.extend(disk.files(&disk.tree(names, top), None));
    }
    assert_same(&scene.line, &whole, &run.new);
    moments
}

fn all_survive(lines: &[&str]) {
    for line in lines {
        let moments = survives_power_cuts(&scene(line), "log");
        assert!(
            moments > 2 || injector().is_none(),
            "{line}: nothing was logged"
        );
    }
}

#[test]
fn books_after_a_power_cut() {
    all_survive(BOOKS);
}

#[test]
fn databases_after_a_power_cut() {
    all_survive(DATABASES);
}

#[test]
fn directories_after_a_power_cut() {
    all_survive(DIRECTORIES);
}

#[test]
fn directories_that_cannot_change_places_after_a_power_cut() {
    for line in DIRECTORIES {
        survives_power_cuts(&scene(line), "log in steps");
    }
}

#[test]
fn texts_after_a_power_cut() {
    all_survive(TEXTS);
}

#[test]
fn evaluations_after_a_power_cut() {
    all_survive(EVALUATIONS);
}

/// A run with an engine stores its evaluations in a journal next to the store. The journal is not flushed.
#[test]
fn evaluations_of_an_engine_after_a_power_cut() {
    let programs = crate::common::temp();
    let engine = write_engine(programs.path());
    let line = format!(
        "evals -q --out my.evals --engine {} --nodes 50 --jobs 1 --positions mine.epd",
        engine.display()
    );
    let scene = Scene::new(&line, |dir| {
        fs::write(dir.join("old.pgn"), "1. c4 { [%eval 0.1] } *\n").unwrap();
        ok(dir, "evals -q --out my.evals old.pgn");
        let positions = ["e4", "d4", "e4 e5", "Nf3"].map(|line| {
            let pos = polybook::position::from_text(None, Some(line)).unwrap();
            polybook::position::fen_of(&pos) + "\n"
        });
        fs::write(dir.join("mine.epd"), positions.concat()).unwrap();
    });
    survives_power_cuts(&scene, "log");
}
