//! The data keys of an open store: it seals bytes with the newest one, and opens those of every one.
//!
//! A *seal* stands behind the encrypted bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 4 | number of the data key, little-endian |
//! | 12 | nonce |
//! | 16 | tag over the encrypted bytes and those that they are bound to |

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use pando_environment::Environment;
use pando_environment::sync::Mutex;

use crate::aead_key::{AeadKey, NONCE_BYTES, TAG_BYTES};
use crate::key_table::KeyTable;
use crate::nonce_source::NonceSource;
use crate::{Cipher, Encryption, EncryptionError};

/// Bytes of a seal.
pub const SEAL_BYTES: usize = 4 + NONCE_BYTES + TAG_BYTES;

/// See the [module](self).
pub type Seal = [u8; SEAL_BYTES];

/// Bytes that are not those that were sealed, or that are bound to something else, or whose key is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealBroken;

/// The facts about a data key, without the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataKeyFacts {
    /// Its number.
    pub number: u32,
    /// When it was made, in milliseconds since 1970.
    pub made_millis: u64,
    /// No block of an earlier generation is sealed with it.
    pub since_generation: u64,
}

/// The keys, ready for use; the newest first.
struct ReadyKeys(Vec<(u32, Arc<AeadKey>)>);

/// The table with its place.
struct Kept {
    table: KeyTable,
    encryption: Encryption,
}

/// See the [module](self).
pub struct Vault {
    environment: Environment,
    folder: PathBuf,
    cipher: Cipher,
    ready: ArcSwap<ReadyKeys>,
    nonces: NonceSource,
    kept: Mutex<Kept>,
}

impl Vault {
    /// Makes the keys of a new store, whose folder is there and locked. A table that an interrupted creation
    /// left is replaced.
    ///
    /// # Errors
    /// The master key cannot be had, or the table cannot be written.
    pub fn create(
        environment: &Environment,
        folder: &Path,
        encryption: &Encryption,
    ) -> Result<Arc<Vault>, EncryptionError> {
        let id = encryption.source.id_for_new();
        let table = KeyTable::new(encryption.cipher, id, environment.clock().wall().millis())?;
        table.write(environment, folder, encryption)?;
        Vault::of_table(environment, folder, encryption, table)
    }

    /// Opens the keys of a store.
    ///
    /// # Errors
    /// The table is missing or damaged, or the master key cannot be had or is not the one of the store.
    pub fn open(
        environment: &Environment,
        folder: &Path,
        encryption: &Encryption,
    ) -> Result<Arc<Vault>, EncryptionError> {
        let table = KeyTable::read(environment, folder, encryption)?;
        Vault::of_table(environment, folder, encryption, table)
    }

    fn of_table(
        environment: &Environment,
        folder: &Path,
        encryption: &Encryption,
        table: KeyTable,
    ) -> Result<Arc<Vault>, EncryptionError> {
        Ok(Arc::new(Vault {
            environment: environment.clone(),
            folder: folder.to_owned(),
            cipher: table.cipher,
            ready: ArcSwap::from_pointee(ReadyKeys::of(&table)),
            nonces: NonceSource::new()?,
            kept: Mutex::new(Kept { table, encryption: encryption.clone() }),
        }))
    }

    /// The cipher of the store.
    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Bytes and records that were sealed since the store was opened.
    pub fn sealed(&self) -> u64 {
        self.nonces.given()
    }

    /// Encrypts in place with the newest key. The seal binds the bytes to `bound`.
    pub fn seal(&self, bound: &[u8], bytes: &mut [u8]) -> Seal {
        let ready = self.ready.load();
        let (number, key) = ready.0.first().expect("a table has a key");
        let nonce = self.nonces.next();
        let tag = key.seal(nonce, bound, bytes);
        let mut seal = [0; SEAL_BYTES];
        seal[..4].copy_from_slice(&number.to_le_bytes());
        seal[4..4 + NONCE_BYTES].copy_from_slice(&nonce);
        seal[4 + NONCE_BYTES..].copy_from_slice(&tag);
        seal
    }

    /// Decrypts in place what [`seal`](Vault::seal) has encrypted: bytes with their seal behind them.
    /// Returns the bytes without it.
    ///
    /// # Errors
    /// Any byte, or `bound`, is not what was sealed. The bytes are of no use then.
    pub fn unseal<'b>(&self, bound: &[u8], sealed: &'b mut [u8]) -> Result<&'b mut [u8], SealBroken> {
        let length = sealed.len().checked_sub(SEAL_BYTES).ok_or(SealBroken)?;
        let seal: Seal = std::array::from_fn(|at| sealed[length + at]);
        let number = u32::from_le_bytes(std::array::from_fn(|at| seal[at]));
        let nonce = std::array::from_fn(|at| seal[4 + at]);
        let ready = self.ready.load();
        let (_, key) = ready.0.iter().find(|(known, _)| *known == number).ok_or(SealBroken)?;
        // The cipher wants the tag right behind the bytes.
        sealed[length..length + TAG_BYTES].copy_from_slice(&seal[4 + NONCE_BYTES..]);
        key.open(nonce, bound, &mut sealed[..length + TAG_BYTES]).ok_or(SealBroken)
    }

    /// The keys, oldest first.
    pub fn data_keys(&self) -> Vec<DataKeyFacts> {
        let kept = self.kept.lock();
        let facts = |key: &crate::key_table::DataKey| DataKeyFacts {
            number: key.number,
            made_millis: key.made_millis,
            since_generation: key.since_generation,
        };
        kept.table.keys.iter().map(facts).collect()
    }

    /// Wraps all data keys under another master key, or makes a new data key, which seals everything from
    /// now on, or does both in one step. The former master key opens the store no longer. The caller knows
    /// that no later block is born before the generation `since` of the data key.
    ///
    /// # Errors
    /// A master key cannot be had, the new one is the present one, there are too many data keys, or the table
    /// cannot be written. Nothing has changed then, but for [`EncryptionError::TableNotDurable`].
    pub fn rotate(&self, master: Option<&Encryption>, since: Option<u64>) -> Result<(), EncryptionError> {
        let mut kept = self.kept.lock();
        let (mut table, mut encryption) = (kept.table.clone(), kept.encryption.clone());
        let mut master_key = encryption.source.master_key(&table.id)?;
        if let Some(new) = master {
            new.source.id_for_new().clone_into(&mut table.id);
            let new_key = new.source.master_key(&table.id)?;
            if new_key.is(&master_key) {
                return Err(EncryptionError::SameKey { origin: new.source.describe() });
            }
            (master_key, encryption) = (new_key, new.clone());
        }
        if let Some(generation) = since {
            table.add(self.environment.clock().wall().millis(), generation)?;
        }
        table.write_under(&master_key, &self.environment, &self.folder)?;
        // Durable before the first use: a key that only memory has would lose what it seals.
        self.ready.store(Arc::new(ReadyKeys::of(&table)));
        *kept = Kept { table, encryption };
        Ok(())
    }

    /// Forgets all data keys before this one. The caller knows that they have sealed none of the bytes that
    /// are left. Returns how many there were.
    ///
    /// # Errors
    /// The table cannot be written; nothing has changed then.
    pub fn forget_before(&self, number: u32) -> Result<usize, EncryptionError> {
        let mut kept = self.kept.lock();
        let mut table = kept.table.clone();
        let newest = table.keys.last().map_or(0, |last| last.number);
        table.keys.retain(|key| key.number >= number.min(newest));
        let forgotten = kept.table.keys.len() - table.keys.len();
        if forgotten > 0 {
            table.write(&self.environment, &self.folder, &kept.encryption)?;
            self.ready.store(Arc::new(ReadyKeys::of(&table)));
            kept.table = table;
        }
        Ok(forgotten)
    }

    /// Writes the table into another folder, as for a copy of the store.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_table(&self, environment: &Environment, folder: &Path) -> Result<(), EncryptionError> {
        let kept = self.kept.lock();
        kept.table.write(environment, folder, &kept.encryption)
    }
}

impl ReadyKeys {
    fn of(table: &KeyTable) -> ReadyKeys {
        let ready =
            |key: &crate::key_table::DataKey| (key.number, Arc::new(AeadKey::new(table.cipher, &key.key)));
        ReadyKeys(table.keys.iter().rev().map(ready).collect())
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault({}, {})", self.cipher, self.folder.display())
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::Operation;
    use pando_environment::simulated::{Fault, FaultRule};

    use super::*;
    use crate::{HeldKey, SecretKey};

    fn encryption(key: u8, cipher: Cipher) -> Encryption {
        Encryption { cipher, source: Arc::new(HeldKey::new(SecretKey::from_bytes(&[key; 32]).unwrap())) }
    }

    fn sealed(vault: &Vault, bound: &[u8], text: &[u8]) -> Vec<u8> {
        let mut bytes = text.to_vec();
        let seal = vault.seal(bound, &mut bytes);
        [bytes, seal.to_vec()].concat()
    }

    #[test]
    fn sealed_bytes_open_only_whole_and_in_their_place() {
        for cipher in Cipher::ALL {
            let environment = Environment::simulated(1).environment;
            let folder = Path::new("/store");
            environment.files().create_dir(folder).unwrap();
            let vault = Vault::create(&environment, folder, &encryption(1, cipher)).unwrap();
            let bytes = sealed(&vault, b"place 7", b"some text");
            assert_ne!(&bytes[..9], b"some text");
            assert_ne!(bytes, sealed(&vault, b"place 7", b"some text"), "no nonce is used twice");
            assert_eq!(vault.unseal(b"place 7", &mut bytes.clone()), Ok(&mut b"some text".to_vec()[..]));
            assert_eq!(vault.unseal(b"place 8", &mut bytes.clone()), Err(SealBroken));
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(vault.unseal(b"place 7", &mut flipped), Err(SealBroken), "bit {bit}");
            }
            for length in 0..bytes.len() {
                assert_eq!(vault.unseal(b"place 7", &mut bytes[..length].to_vec()), Err(SealBroken));
            }
        }
    }

    #[test]
    fn keys_outlive_rotations_of_both_kinds() {
        let environment = Environment::simulated(2).environment;
        let folder = Path::new("/store");
        environment.files().create_dir(folder).unwrap();
        let (first, second) = (encryption(1, Cipher::Aes256Gcm), encryption(2, Cipher::ChaCha20Poly1305));
        let vault = Vault::create(&environment, folder, &first).unwrap();
        let old = sealed(&vault, b"", b"old");
        vault.rotate(None, Some(5)).unwrap();
        let new = sealed(&vault, b"", b"new");
        vault.rotate(Some(&second), None).unwrap();
        drop(vault);
        let error = Vault::open(&environment, folder, &first).unwrap_err();
        assert!(matches!(error, EncryptionError::WrongKey { .. }), "{error}");
        let vault = Vault::open(&environment, folder, &second).unwrap();
        assert_eq!(vault.cipher(), Cipher::Aes256Gcm, "a store keeps its cipher");
        assert_eq!(vault.unseal(b"", &mut old.clone()), Ok(&mut b"old".to_vec()[..]));
        assert_eq!(vault.unseal(b"", &mut new.clone()), Ok(&mut b"new".to_vec()[..]));
        assert_eq!(vault.forget_before(2).unwrap(), 1);
        assert_eq!(vault.unseal(b"", &mut old.clone()), Err(SealBroken));
        let numbers: Vec<u32> = vault.data_keys().iter().map(|key| key.number).collect();
        assert_eq!(numbers, [2]);
        assert_eq!(vault.forget_before(9).unwrap(), 0, "the newest key stays");
    }

    fn numbers(vault: &Vault) -> Vec<u32> {
        vault.data_keys().iter().map(|key| key.number).collect()
    }

    #[test]
    fn a_rotation_changes_both_keys_or_neither() {
        let (first, second) = (encryption(1, Cipher::Aes256Gcm), encryption(2, Cipher::Aes256Gcm));
        let folder = Path::new("/store");
        let faults =
            [Operation::Open, Operation::Length, Operation::Write, Operation::Sync, Operation::Rename];
        for operation in faults {
            let simulation = Environment::simulated(3);
            let environment = &simulation.environment;
            environment.files().create_dir(folder).unwrap();
            let vault = Vault::create(environment, folder, &first).unwrap();
            let rule = FaultRule::new(operation, Fault::InputOutputError);
            simulation.disk.inject(rule.on(if operation == Operation::Rename { "" } else { "keys.new" }));
            let error = vault.rotate(Some(&second), Some(7)).unwrap_err();
            assert!(matches!(error, EncryptionError::Environment(_)), "{operation:?}: {error}");
            assert_eq!(numbers(&vault), [1]);
            assert_eq!(numbers(&Vault::open(environment, folder, &first).unwrap()), [1]);
            assert!(Vault::open(environment, folder, &second).is_err());
            vault.rotate(Some(&second), Some(7)).unwrap();
            assert_eq!(numbers(&Vault::open(environment, folder, &second).unwrap()), [1, 2]);
        }
    }

    #[test]
    fn too_many_data_keys_leave_the_master_key_as_it_was() {
        let (first, second) = (encryption(1, Cipher::Aes256Gcm), encryption(2, Cipher::Aes256Gcm));
        let (environment, folder) = (Environment::simulated(4).environment, Path::new("/store"));
        environment.files().create_dir(folder).unwrap();
        let vault = Vault::create(&environment, folder, &first).unwrap();
        while vault.kept.lock().table.add(0, 0).is_ok() {}
        let error = vault.rotate(Some(&second), Some(1)).unwrap_err();
        assert!(matches!(error, EncryptionError::TooManyKeys { .. }), "{error}");
        assert!(Vault::open(&environment, folder, &first).is_ok());
    }

    #[test]
    fn a_table_that_is_not_durable_has_both_master_keys_kept() {
        let simulation = Environment::simulated(5);
        let (environment, folder) = (&simulation.environment, Path::new("/store"));
        environment.files().create_dir(folder).unwrap();
        let vault = Vault::create(environment, folder, &encryption(1, Cipher::Aes256Gcm)).unwrap();
        simulation.disk.inject(FaultRule::new(Operation::SyncFolder, Fault::InputOutputError));
        let second = encryption(2, Cipher::Aes256Gcm);
        let error = vault.rotate(Some(&second), None).unwrap_err();
        assert!(error.to_string().contains("keep both master keys"), "{error}");
        assert!(Vault::open(environment, folder, &second).is_ok(), "the new table is in place");
    }

    #[test]
    fn a_rotation_to_the_present_master_key_is_refused() {
        let (environment, folder) = (Environment::simulated(6).environment, Path::new("/store"));
        environment.files().create_dir(folder).unwrap();
        let vault = Vault::create(&environment, folder, &encryption(1, Cipher::Aes256Gcm)).unwrap();
        let error = vault.rotate(Some(&encryption(1, Cipher::ChaCha20Poly1305)), Some(1)).unwrap_err();
        assert!(matches!(error, EncryptionError::SameKey { .. }), "{error}");
        assert_eq!(numbers(&vault), [1], "nothing has changed");
    }

    /// A source that has one key under each id, and asks for one of them.
    struct Named(Option<&'static str>);

    impl crate::KeySource for Named {
        fn master_key(&self, _id: &str) -> Result<SecretKey, EncryptionError> {
            Ok(SecretKey::from_bytes(&[9; 32]).unwrap())
        }

        fn id_for_new(&self) -> &'static str {
            "store/1"
        }

        fn required_id(&self) -> Option<&str> {
            self.0
        }

        fn describe(&self) -> String {
            "named keys".to_owned()
        }
    }

    #[test]
    fn a_store_that_names_another_master_key_is_refused() {
        let (environment, folder) = (Environment::simulated(7).environment, Path::new("/store"));
        environment.files().create_dir(folder).unwrap();
        let named = |id| Encryption { cipher: Cipher::Aes256Gcm, source: Arc::new(Named(id)) };
        drop(Vault::create(&environment, folder, &named(None)).unwrap());
        assert_eq!(crate::master_key_id(&environment, folder).unwrap(), "store/1");
        assert!(Vault::open(&environment, folder, &named(None)).is_ok());
        assert!(Vault::open(&environment, folder, &named(Some("store/1"))).is_ok());
        let error = Vault::open(&environment, folder, &named(Some("store/2"))).unwrap_err();
        assert!(matches!(error, EncryptionError::OtherKeyId { .. }), "{error}");
        assert!(error.to_string().contains("/store/keys names the master key 'store/1'"), "{error}");
    }
}
