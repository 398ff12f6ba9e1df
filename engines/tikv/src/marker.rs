//! The folder of a server of this engine: its file `tikv-store`.
//!
//! The folder holds no documents. The file names the keyspace, the number of the
//! server, and the way to the cluster, so that tools find the store by its folder alone:
//!
//! ```text
//! pando tikv 1
//! keyspace shop
//! server 0123456789abcdef
//! pd 10.0.0.1:2379,10.0.0.2:2379
//! ca /etc/pando/ca.pem
//! certificate /etc/pando/server.pem
//! key /etc/pando/server.key
//! ```
//!
//! The last three lines are there for encrypted connections. The last start of the server has written the
//! addresses and the paths: they are what counts where the options name none.

use std::path::{Path, PathBuf};

use pando_environment::{Access, Environment, EnvironmentError, OpenMode};
use pando_storage::StorageError;

use crate::failure::{corrupt, environment_failed, invalid};
use crate::options::{Certificates, TikvOptions};

/// The file that tells a folder of this engine.
const NAME: &str = "tikv-store";
/// The file before it has its name.
const UNFINISHED: &str = "tikv-store.new";

const FIRST_LINE: &str = "pando tikv 1";
const BYTES_MAX: u64 = 64 << 10;

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub keyspace: String,
    /// The number of the server.
    pub server: u64,
    pub placement_drivers: Vec<String>,
    pub certificates: Option<Certificates>,
}

impl Marker {
    /// The file of a folder; `None` if the folder has none.
    pub(crate) fn read(environment: &Environment, folder: &Path) -> Result<Option<Marker>, StorageError> {
        let failed = |error| environment_failed("cannot read the file `tikv-store`", error);
        let path = folder.join(NAME);
        let files = environment.files();
        if !files.exists(&path).map_err(failed)? {
            return Ok(None);
        }
        let file = files.open(&path, OpenMode::ReadOnly, Access::Buffered).map_err(failed)?;
        let mut bytes = vec![0; file.length().map_err(failed)?.min(BYTES_MAX) as usize];
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        let marker = Marker::parse(&text).ok_or_else(|| {
            corrupt(format!(
                "{} is damaged: remove it, name the cluster and the keyspace again, and wait half a minute for the \
                 lease of the store",
                path.display()
            ))
        })?;
        Ok(Some(marker))
    }

    /// The file of a folder as these options want it: made, or changed where the cluster has moved.
    ///
    /// # Errors
    /// The folder belongs to another keyspace.
    pub(crate) fn of_folder(
        environment: &Environment,
        folder: &Path,
        options: &TikvOptions,
    ) -> Result<Marker, StorageError> {
        let found = Marker::read(environment, folder)?;
        if let Some(found) = found.as_ref().filter(|found| found.keyspace != options.keyspace) {
            return Err(invalid(format!(
                "{} belongs to the keyspace `{}`, and `{}` was asked for: choose that keyspace, or another folder",
                folder.join(NAME).display(),
                found.keyspace,
                options.keyspace
            )));
        }
        let wanted = Marker {
            keyspace: options.keyspace.clone(),
            server: found.as_ref().map_or_else(|| environment.random().next_u64(), |found| found.server),
            placement_drivers: options.placement_drivers.clone(),
            certificates: options.certificates.clone(),
        };
        if found.as_ref() != Some(&wanted) {
            let failed = |error| environment_failed("cannot write the file `tikv-store`", error);
            wanted.write(environment, folder).map_err(failed)?;
        }
        Ok(wanted)
    }

    fn write(&self, environment: &Environment, folder: &Path) -> Result<(), EnvironmentError> {
        let (files, unfinished) = (environment.files(), folder.join(UNFINISHED));
        let file = files.open(&unfinished, OpenMode::CreateOrOpen, Access::Buffered)?;
        let text = self.text();
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_length(text.len() as u64)?;
        file.sync_data()?;
        files.rename(&unfinished, &folder.join(NAME))?;
        files.sync_dir(folder)
    }

    fn text(&self) -> String {
        let Marker { keyspace, server, placement_drivers, certificates } = self;
        let drivers = placement_drivers.join(",");
        let mut text = format!("{FIRST_LINE}\nkeyspace {keyspace}\nserver {server:016x}\npd {drivers}\n");
        if let Some(Certificates { authority, certificate, key }) = certificates {
            for (name, path) in [("ca", authority), ("certificate", certificate), ("key", key)] {
                text.push_str(&format!("{name} {}\n", path.display()));
            }
        }
        text
    }

    fn parse(text: &str) -> Option<Marker> {
        let mut lines = text.lines().peekable();
        if lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let mut named = |name: &str| {
            let value = lines.peek()?.strip_prefix(name)?.strip_prefix(' ')?.to_owned();
            lines.next();
            Some(value)
        };
        let keyspace = named("keyspace")?;
        let server = u64::from_str_radix(&named("server")?, 16).ok()?;
        let placement_drivers = named("pd")?.split(',').map(str::to_owned).collect();
        let certificates = match named("ca") {
            None => None,
            Some(authority) => Some(Certificates {
                authority: PathBuf::from(authority),
                certificate: PathBuf::from(named("certificate")?),
                key: PathBuf::from(named("key")?),
            }),
        };
        Some(Marker { keyspace, server, placement_drivers, certificates })
    }
}

impl TikvOptions {
    /// The options of a folder: those by which its server was started last, as far as they say which store it
    /// is and where. The default options for a new folder.
    ///
    /// # Errors
    /// The file of the folder is damaged.
    pub fn of_folder(environment: &Environment, folder: &Path) -> Result<TikvOptions, StorageError> {
        let options = TikvOptions::default();
        Ok(match Marker::read(environment, folder)? {
            None => options,
            Some(Marker { keyspace, placement_drivers, certificates, server: _ }) => {
                TikvOptions { keyspace, placement_drivers, certificates, ..options }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(entries: &[(&str, &str)]) -> TikvOptions {
        let entries: Vec<_> = entries.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        TikvOptions::default().with_entries(&entries).expect("the options are sound")
    }

    #[test]
    fn a_folder_keeps_its_server_its_keyspace_and_the_way_to_the_cluster() {
        let (environment, folder) = (Environment::real(), tempfile::tempdir().expect("a temporary folder"));
        let folder = folder.path();
        assert_eq!(TikvOptions::of_folder(&environment, folder).expect("none"), TikvOptions::default());
        let shop = options(&[("keyspace", "shop"), ("pd", "a:1,b:2")]);
        let made = Marker::of_folder(&environment, folder, &shop).expect("it is made");
        assert_eq!(TikvOptions::of_folder(&environment, folder).expect("it is read"), shop);
        let files = [("ca", "/a b/ca"), ("certificate", "/c"), ("key", "/k")];
        let moved = shop.with_entries(&[("pd".into(), "c:3".into())]).expect("the options are sound");
        let moved = moved.with_entries(&files.map(|(name, path)| (name.into(), path.into())));
        let moved = moved.expect("the options are sound");
        let changed = Marker::of_folder(&environment, folder, &moved).expect("it is changed");
        assert_eq!(changed.server, made.server);
        assert_eq!(TikvOptions::of_folder(&environment, folder).expect("it is read"), moved);
        let other = Marker::of_folder(&environment, folder, &options(&[("keyspace", "bank")]));
        let other = other.expect_err("it is refused").to_string();
        assert!(other.contains("`shop`") && other.contains("`bank`"), "{other}");
    }

    #[test]
    fn a_damaged_file_is_told() {
        let whole = "pando tikv 1\nkeyspace shop\nserver 1\npd a:1\nca /a\ncertificate /c\nkey /k\n";
        assert!(Marker::parse(whole).is_some());
        let lines: Vec<&str> = whole.lines().collect();
        for end in [0, 1, 2, 3, 5, 6] {
            assert_eq!(Marker::parse(&lines[..end].join("\n")), None, "{end}");
        }
        assert_eq!(Marker::parse(&whole.replace("server 1", "server no")), None);
    }
}
