//! The file of the audit trail: one JSON object a line, appended, for the eyes of its owner only (mode 0600).
//!
//! # Chain
//! With a chain each line ends in `"chain"`: the SHA-256 of the chain of the line before and of the line
//! without its own. A line that is changed, left out or moved breaks it ([`verify`]). The first line of a
//! file that follows another one continues the chain of that one, also after a restart. Lines that are cut
//! off at the end are seen only by those who know the last chain, which [`verify`] tells.
//!
//! A line whose write broke off, for lack of room or by a crash, stays as it is, outside of the chain. The
//! next one begins a new line, so that it can be read, and follows the last whole one. In front of it stands
//! an event `eventsLost` with the number of the lines that could not be written.
//!
//! # Not here
//! A chain over a restart finds the file before an empty one by the names that [`AuditFile`] gives. Where
//! another program has moved the trail away and nothing was appended since, it begins anew.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pando_commands::AuditLog;
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest, Sha256};
use tracing::error;

/// The mode of the file.
const MODE: u32 = 0o600;
/// The field of the chain, as it stands at the end of a line.
const FIELD: &str = ",\"chain\":\"";
/// Hexadecimal digits of a chain.
const DIGITS: usize = 64;

/// Whether lines are chained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chaining {
    /// Yes.
    On,
    /// No.
    Off,
}

/// The open file.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    chaining: Chaining,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// The chain of the last whole line.
    last: String,
    end: End,
    /// Lines that could not be written, and that no line has told of yet.
    lost: u64,
}

/// The end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// That of a line, or there is none.
    Line,
    /// A part of a line.
    Torn,
}

impl AuditFile {
    /// Opens a file to append to it; makes it if it is missing. A chain goes on where it ended.
    ///
    /// # Errors
    /// It cannot be opened, or is a pipe or socket: such a reader would stop the server when it stalls, and a
    /// chain cannot be read again.
    pub(crate) fn open(path: &Path, chaining: Chaining) -> io::Result<AuditFile> {
        let kind = std::fs::metadata(path).map(|found| found.file_type());
        if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket()) {
            return Err(io::Error::other("it is a pipe or socket, whose reader could stop the server"));
        }
        let last = if chaining == Chaining::On { last_chain(path)? } else { String::new() };
        let state = State { file: open_to_append(path)?, last, end: end_of(path)?, lost: 0 };
        Ok(AuditFile { path: path.to_owned(), chaining, state: Mutex::new(state) })
    }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(MODE).open(path)
}

impl AuditFile {
    /// Appends one line. After an error the chain is where it was.
    fn write_line(&self, state: &mut State, line: &str) -> io::Result<()> {
        let mut whole = line.to_owned();
        let mut chain = String::new();
        if self.chaining == Chaining::On {
            chain = chain_of(&state.last, line);
            whole = chained(line, &chain);
        }
        whole.push('\n');
        if state.end == End::Torn {
            // The space ends the torn line as no whole line ends, even if only its newline is missing.
            whole.insert_str(0, " \n");
        }
        // One write, so that no other process comes between the parts of a line.
        let written = state.file.write_all(whole.as_bytes());
        match &written {
            Ok(()) => {
                state.end = End::Line;
                state.last = chain;
            }
            Err(_) => state.end = end_of(&self.path).unwrap_or(End::Torn),
        }
        written
    }

    /// The name of the file that a rotation leaves behind: the trail's with the milliseconds since 1970.
    /// Two rotations within one millisecond get names one after the other, since a rename would replace the
    /// first one's file.
    fn free_name(&self) -> io::Result<PathBuf> {
        let mut milliseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        loop {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{milliseconds}"));
            let name = PathBuf::from(name);
            if !name.try_exists()? {
                return Ok(name);
            }
            milliseconds += 1;
        }
    }
}

impl AuditLog for AuditFile {
    fn append(&self, line: &str) {
        let mut state = self.state.lock();
        let told = match state.lost {
            0 => Ok(()),
            lost => self.write_line(&mut state, &event_of_loss(lost)).map(|()| state.lost = 0),
        };
        if let Err(error) = told.and_then(|()| self.write_line(&mut state, line)) {
            state.lost += 1;
            error!(
                "an event of the audit trail is lost: cannot write to {} ({error}); make room or mend the disk, and compare with \
                 the log of this time",
                self.path.display()
            );
        }
    }

    fn rotate(&self) -> Result<(), String> {
        let mut state = self.state.lock();
        let failed = |error: io::Error| format!("cannot rotate {}: {error}", self.path.display());
        if is_at(&self.path, &state.file).map_err(failed)? {
            let kept = self.free_name().map_err(failed)?;
            std::fs::rename(&self.path, &kept).map_err(failed)?;
        }
        // A file that another program has put there, as logrotate's `create` does, may have lines already.
        state.file = open_to_append(&self.path).map_err(failed)?;
        state.end = end_of(&self.path).map_err(failed)?;
        Ok(())
    }
}

/// The event that tells of lines which could not be written, in the schema of the others.
fn event_of_loss(lost: u64) -> String {
    let mut uuid = [0; 16];
    // Without randomness the event has no identity of its own, and is told all the same.
    let _ = getrandom::fill(&mut uuid);
    let now = bson::DateTime::now().try_to_rfc3339_string().unwrap_or_default();
    let event = json!({
        "atype": "eventsLost",
        "ts": { "$date": now },
        "uuid": { "$binary": { "base64": STANDARD.encode(uuid), "subType": "04" } },
        "local": { "unix": "anonymous" },
        "remote": { "unix": "anonymous" },
        "users": [],
        "roles": [],
        "param": { "count": lost },
        "result": 0,
    });
    event.to_string()
}

/// Whether the path still names the open file: a program such as logrotate may have moved it away.
fn is_at(path: &Path, file: &File) -> io::Result<bool> {
    let open = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The line with its chain.
fn chained(line: &str, chain: &str) -> String {
    let open = line.strip_suffix('}').unwrap_or(line);
    format!("{open}{FIELD}{chain}\"}}")
}

/// A line without its chain, and that.
fn unchained(line: &str) -> Option<(String, &str)> {
    let rest = line.strip_suffix("\"}")?;
    let at = rest.len().checked_sub(DIGITS)?;
    let (before, chain) = (rest.get(..at)?, rest.get(at..)?);
    Some((format!("{}}}", before.strip_suffix(FIELD)?), chain))
}

fn chain_of(previous: &str, line: &str) -> String {
    let digest = Sha256::new().chain_update(previous).chain_update(line).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last chain of a file; that of the file before it where it has none yet.
fn last_chain(path: &Path) -> io::Result<String> {
    let mut last = last_chain_within(path)?;
    if last.is_empty()
        && let Some(before) = file_before(path)?
    {
        last = last_chain_within(&before)?;
    }
    Ok(last)
}

fn last_chain_within(path: &Path) -> io::Result<String> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        opened => opened?,
    };
    let (mut reader, mut line, mut last) = (BufReader::new(file), Vec::new(), String::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        // A line without its newline is torn.
        let whole = std::str::from_utf8(&line).ok().and_then(|line| line.strip_suffix('\n'));
        if let Some((_, chain)) = whole.and_then(unchained) {
            chain.clone_into(&mut last);
        }
        line.clear();
    }
    Ok(last)
}

/// The file that the last rotation has left behind, if it is still there.
fn file_before(path: &Path) -> io::Result<Option<PathBuf>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(None);
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut newest = None;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?.file_name();
        let time = entry
            .to_str()
            .and_then(|entry| entry.strip_prefix(name)?.strip_prefix('.')?.parse::<u128>().ok());
        newest = newest.max(time);
    }
    Ok(newest.map(|time| folder.join(format!("{name}.{time}"))))
}

/// Whether the last line of a file is whole. Pipes and devices cannot tell.
fn end_of(path: &Path) -> io::Result<End> {
    let facts = std::fs::metadata(path)?;
    if !facts.is_file() || facts.len() == 0 {
        return Ok(End::Line);
    }
    let (mut file, mut last) = (File::open(path)?, [0]);
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(if last == *b"\n" { End::Line } else { End::Torn })
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    pub(crate) lines: u64,
    /// Lines that are not sound. Without one the file is.
    pub(crate) faults: u64,
    /// The chain of the last line that has one.
    pub(crate) last: String,
}

/// Why a file is not sound.
#[derive(Debug, thiserror::Error)]
pub enum AuditFault {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A line has no chain.
    #[error("line {line} of {} has no chain; the file was written without --audit-chain, or changed there, or the write of the line broke off", path.display())]
    NoChain {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// No line has a chain.
    #[error("no line of {} has a chain: the file was written without --audit-chain, so that nothing can be checked", path.display())]
    NeverChained {
        /// The file.
        path: PathBuf,
    },
    /// The first line does not begin a chain.
    #[error(
        "line 1 of {} does not begin a chain: if the file was begun by a rotation, name the last chain of the file before it with \
         --previous ('pando audit verify' of that file prints it); otherwise lines before it are missing, or it was changed",
        path.display()
    )]
    NotTheFirst {
        /// The file.
        path: PathBuf,
    },
    /// A line does not follow the one before.
    #[error(
        "line {line} of {} does not follow the line before it; one of the two was changed, left out or moved, or --previous names \
         the chain of another file",
        path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
}

/// Checks the chain of a file, and reports each line that is not sound. `previous` is the last chain of the
/// file before it; without one the file is the first of its chain.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn verify(
    path: &Path,
    previous: Option<&str>,
    mut report: impl FnMut(AuditFault),
) -> Result<Verified, AuditFault> {
    let failed = |source| AuditFault::Read { path: path.to_owned(), source };
    let mut last = previous.unwrap_or_default().to_owned();
    let (mut lines, mut faults) = (0, 0);
    // A file without any chain has one fault for all its lines.
    let is_chained = has_chain(path).map_err(failed)?;
    for line in BufReader::new(File::open(path).map_err(failed)?).split(b'\n') {
        let line = line.map_err(failed)?;
        lines += 1;
        let Some((bare, chain)) = std::str::from_utf8(&line).ok().and_then(unchained) else {
            faults += 1;
            if is_chained {
                report(AuditFault::NoChain { path: path.to_owned(), line: lines });
            }
            continue;
        };
        if chain_of(&last, &bare) != chain {
            faults += 1;
            let path = path.to_owned();
            report(match (lines, previous) {
                (1, None) => AuditFault::NotTheFirst { path },
                _ => AuditFault::Broken { path, line: lines },
            });
        }
        // Also behind a break, so that each break is reported once.
        chain.clone_into(&mut last);
    }
    if lines > 0 && !is_chained {
        report(AuditFault::NeverChained { path: path.to_owned() });
        last.clear();
    }
    Ok(Verified { lines, faults, last })
}

/// Whether any line of a file has a chain.
fn has_chain(path: &Path) -> io::Result<bool> {
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        if std::str::from_utf8(&line?).ok().and_then(unchained).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// The faults of a file, as people read them.
    fn faults(path: &Path, previous: Option<&str>) -> Vec<String> {
        let mut told = Vec::new();
        verify(path, previous, |fault| told.push(fault.to_string())).unwrap();
        told
    }

    /// The outcome for a file without a fault.
    fn sound(path: &Path, previous: Option<&str>) -> Verified {
        let verified = verify(path, previous, |fault| panic!("{fault}")).unwrap();
        assert_eq!(verified.faults, 0);
        verified
    }

    #[test]
    fn a_chain_goes_on_after_a_restart_and_a_change_breaks_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.json");
        for round in 0..2 {
            let file = AuditFile::open(&path, Chaining::On).unwrap();
            for number in 0..5 {
                file.append(&format!("{{\"round\":{round},\"number\":{number}}}"));
            }
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let whole = sound(&path, None);
        assert_eq!(whole.lines, 10);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let without = |left_out: usize| {
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
            kept.map(|(_, line)| format!("{line}\n")).collect::<String>()
        };
        for (changed, line) in [
            (text.replacen("\"number\":3", "\"number\":4", 1), 4),
            (without(2), 3),
            (without(0), 1),
            (text.replacen(lines[6], "{\"a\":1}", 1), 7),
        ] {
            std::fs::write(&path, changed).unwrap();
            let told = faults(&path, None).remove(0);
            assert!(told.starts_with(&format!("line {line} ")), "{told}");
        }
    }

    #[test]
    fn a_rotation_opens_a_new_file_where_another_program_has_moved_the_old_one_away() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("audit.json"), folder.path().join("audit.json.1"));
        let file = AuditFile::open(&path, Chaining::On).unwrap();
        file.append("{\"a\":1}");
        std::fs::rename(&path, &moved).unwrap();
        file.append("{\"a\":2}");
        file.rotate().unwrap();
        file.append("{\"a\":3}");
        let moved_again = folder.path().join("audit.json.2");
        std::fs::rename(&path, &moved_again).unwrap();
        // As logrotate's `create` leaves it.
        std::fs::write(&path, "").unwrap();
        file.rotate().unwrap();
        file.append("{\"a\":4}");
        let lines = |path: &Path| std::fs::read_to_string(path).unwrap().lines().count();
        assert_eq!([&moved, &moved_again, &path].map(|path| lines(path)), [2, 1, 1]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_file_that_was_never_chained_is_told_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.json");
        let file = AuditFile::open(&path, Chaining::Off).unwrap();
        (0..9).for_each(|number| file.append(&format!("{{\"a\":{number}}}")));
        let told = faults(&path, None);
        assert!(told.len() == 1 && told[0].contains("without --audit-chain"), "{told:?}");
        let verified = verify(&path, None, |_| {}).unwrap();
        assert_eq!((verified.lines, verified.faults, verified.last.as_str()), (9, 9, ""));
    }

    #[test]
    fn a_line_that_broke_off_spoils_no_other_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.json");
        AuditFile::open(&path, Chaining::On).unwrap().append("{\"a\":1}");
        let whole = sound(&path, None);
        let mut file = open_to_append(&path).unwrap();
        file.write_all(b"{\"a\":2,\"b\":\"\xff").unwrap();
        AuditFile::open(&path, Chaining::On).unwrap().append("{\"a\":3}");
        let bytes = std::fs::read(&path).unwrap();
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[2].starts_with(b"{\"a\":3,"));
        // The torn line is told, and without it the others are one chain.
        assert_eq!(faults(&path, None).len(), 1);
        std::fs::write(&path, [lines[0], lines[2], b""].join(&b'\n')).unwrap();
        assert_eq!(sound(&path, None).lines, 2);
        assert_ne!(sound(&path, None).last, whole.last);
    }

    #[test]
    fn a_line_that_lacks_its_newline_only_is_torn_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.json");
        let file = AuditFile::open(&path, Chaining::On).unwrap();
        file.append("{\"a\":1}");
        file.append("{\"a\":2}");
        drop(file);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        AuditFile::open(&path, Chaining::On).unwrap().append("{\"a\":3}");
        let told = faults(&path, None);
        assert!(
            told.len() == 1 && told[0].contains("line 2 of") && told[0].contains("has no chain"),
            "{told:?}"
        );
    }

    #[test]
    fn lines_that_cannot_be_written_are_told_by_a_later_one_and_spoil_no_chain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.json");
        let file = AuditFile::open(&path, Chaining::On).unwrap();
        file.append("{\"a\":1}");
        // A file that is open for reading refuses every write.
        let writable = std::mem::replace(&mut file.state.lock().file, File::open(&path).unwrap());
        file.append("{\"a\":2}");
        file.append("{\"a\":3}");
        file.state.lock().file = writable;
        file.append("{\"a\":4}");
        assert_eq!(sound(&path, None).lines, 3);
        let text = std::fs::read_to_string(&path).unwrap();
        let told = text.lines().nth(1).unwrap();
        assert!(told.contains("eventsLost") && told.contains("\"count\":2"), "{told}");
        // A restart goes on with the same chain.
        AuditFile::open(&path, Chaining::On).unwrap().append("{\"a\":5}");
        assert_eq!(sound(&path, None).lines, 4);
    }

    #[test]
    fn every_break_is_reported_and_the_lines_behind_it_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.json");
        let file = AuditFile::open(&path, Chaining::On).unwrap();
        (0..9).for_each(|number| file.append(&format!("{{\"number\":{number}}}")));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(
            &path,
            text.replace("\"number\":2", "\"number\":0").replace("\"number\":6", "\"number\":0"),
        )
        .unwrap();
        let told = faults(&path, None);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("line 3 ") && told[1].starts_with("line 7 "), "{told:?}");
    }

    #[test]
    fn a_new_file_without_a_line_continues_the_chain_of_the_old_one_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.json");
        let mut last = String::new();
        for number in 0..3 {
            let file = AuditFile::open(&path, Chaining::On).unwrap();
            file.append(&format!("{{\"a\":{number}}}"));
            assert_eq!(sound(&path, Some(&last)).lines, 1, "{number}");
            last = sound(&path, Some(&last)).last;
            file.rotate().unwrap();
        }
    }

    #[test]
    fn a_new_file_continues_the_chain_of_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.json");
        let file = AuditFile::open(&path, Chaining::On).unwrap();
        file.append("{\"a\":1}");
        let first = sound(&path, None);
        file.rotate().unwrap();
        file.append("{\"a\":2}");
        let told = faults(&path, None);
        assert!(told.len() == 1 && told[0].contains("--previous"), "it is not the beginning: {told:?}");
        assert_eq!(sound(&path, Some(&first.last)).lines, 1);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
