//! The table of a store's data keys: the file `keys` of its folder, encrypted under the master key.
//!
//! Little-endian:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic `PANDOKEY` |
//! | 8 | 4 | format version, 1 |
//! | 12 | 1 | cipher: 1 AES-256-GCM, 2 ChaCha20-Poly1305 |
//! | 13 | 3 | zero |
//! | 16 | 4 | bytes of the master key's id, at most 256 |
//! | 20 | 4 | bytes of the sealed keys |
//! | 24 | 12 | nonce |
//! | 36 | | the id; the sealed keys; the tag (16 bytes), which authenticates all bytes before the sealed keys as well |
//! | | 8 | xxh3 (64 bits, seed 0) of all bytes before: it tells a damaged file from a wrong key |
//!
//! The sealed keys are records of 52 bytes, the oldest first: number (u32, ascending), when the key was made
//! (milliseconds since 1970), the first generation of the store whose blocks it may seal (u64 each), the key.
//! The last one seals what is written now.
//!
//! The file is replaced as a whole: written under another name, synced, renamed.

use std::path::Path;

use pando_environment::{Access, Environment, OpenMode};
use xxhash_rust::xxh3::xxh3_64;
use zeroize::Zeroizing;

use crate::aead_key::{AeadKey, NONCE_BYTES, TAG_BYTES};
use crate::key_command::ID_BYTES_MAX;
use crate::secret_key::{KEY_BYTES, fill_random};
use crate::{Cipher, Encryption, EncryptionError, SecretKey};

/// The file's name.
pub const FILE: &str = "keys";
/// Its name until it is whole.
pub const UNFINISHED_FILE: &str = "keys.new";

const MAGIC: [u8; 8] = *b"PANDOKEY";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 36;
const CHECKSUM_BYTES: usize = 8;
const RECORD_BYTES: usize = 20 + KEY_BYTES;
/// The most keys of a table.
const KEYS_MAX: usize = 1_000;
/// The longest file.
const FILE_BYTES_MAX: usize =
    HEADER_BYTES + ID_BYTES_MAX + KEYS_MAX * RECORD_BYTES + TAG_BYTES + CHECKSUM_BYTES;

/// A data key with its facts.
#[derive(Clone, Debug)]
pub(crate) struct DataKey {
    pub(crate) number: u32,
    pub(crate) made_millis: u64,
    /// No block of an earlier generation is sealed with it.
    pub(crate) since_generation: u64,
    pub(crate) key: SecretKey,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct KeyTable {
    pub(crate) cipher: Cipher,
    /// The id of the master key; empty where its source has one key only.
    pub(crate) id: String,
    /// Ascending by number; never empty.
    pub(crate) keys: Vec<DataKey>,
}

impl KeyTable {
    /// A table with a new key.
    pub(crate) fn new(cipher: Cipher, id: &str, now_millis: u64) -> Result<KeyTable, EncryptionError> {
        let mut table = KeyTable { cipher, id: id.to_owned(), keys: Vec::new() };
        table.add(now_millis, 0)?;
        Ok(table)
    }

    /// Adds a key, with which blocks are sealed from now on. Returns its number.
    pub(crate) fn add(&mut self, now_millis: u64, since_generation: u64) -> Result<u32, EncryptionError> {
        if self.keys.len() >= KEYS_MAX {
            return Err(EncryptionError::TooManyKeys { count: self.keys.len() });
        }
        let number = self.keys.last().map_or(1, |last| last.number + 1);
        let key = SecretKey::random()?;
        self.keys.push(DataKey { number, made_millis: now_millis, since_generation, key });
        Ok(number)
    }

    /// Reads the table of a folder.
    pub(crate) fn read(
        environment: &Environment,
        folder: &Path,
        encryption: &Encryption,
    ) -> Result<KeyTable, EncryptionError> {
        let path = folder.join(FILE);
        let bytes = read_file(environment, &path)?;
        let sealed = decode_file(&bytes, &path)?;
        let (wanted, found) = (encryption.source.required_id(), sealed.id.to_owned());
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            return Err(EncryptionError::OtherKeyId { path, found, wanted: wanted.to_owned() });
        }
        let master = encryption.source.master_key(sealed.id)?;
        let Some(keys) = sealed.open(&master) else {
            return Err(EncryptionError::WrongKey { origin: encryption.source.describe(), path });
        };
        let problem = "its keys are malformed";
        let keys = decode_keys(&keys).ok_or(EncryptionError::TableDamaged { path, problem })?;
        Ok(KeyTable { cipher: sealed.cipher, id: found, keys })
    }

    /// Replaces the table of a folder by this one, under the master key that it names. Durable on return.
    pub(crate) fn write(
        &self,
        environment: &Environment,
        folder: &Path,
        encryption: &Encryption,
    ) -> Result<(), EncryptionError> {
        self.write_under(&encryption.source.master_key(&self.id)?, environment, folder)
    }

    /// The same with the master key at hand.
    ///
    /// # Errors
    /// After [`EncryptionError::TableNotDurable`] either table may be in place; after any other error it is
    /// the former one.
    pub(crate) fn write_under(
        &self,
        master: &SecretKey,
        environment: &Environment,
        folder: &Path,
    ) -> Result<(), EncryptionError> {
        replace(environment, folder, &self.encode(master)?)
    }

    fn encode(&self, master: &SecretKey) -> Result<Vec<u8>, EncryptionError> {
        let id = &self.id;
        let mut keys = Zeroizing::new(Vec::with_capacity(self.keys.len() * RECORD_BYTES));
        for key in &self.keys {
            keys.extend_from_slice(&key.number.to_le_bytes());
            keys.extend_from_slice(&key.made_millis.to_le_bytes());
            keys.extend_from_slice(&key.since_generation.to_le_bytes());
            keys.extend_from_slice(key.key.bytes());
        }
        let mut nonce = [0; NONCE_BYTES];
        fill_random(&mut nonce)?;
        let length = |bytes: usize| u32::try_from(bytes).expect("ids and tables are short").to_le_bytes();
        let mut out = Vec::with_capacity(FILE_BYTES_MAX);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[self.cipher.number(), 0, 0, 0]);
        out.extend_from_slice(&length(id.len()));
        out.extend_from_slice(&length(keys.len()));
        out.extend_from_slice(&nonce);
        out.extend_from_slice(id.as_bytes());
        let tag = AeadKey::new(self.cipher, master).seal(nonce, &out, &mut keys);
        out.extend_from_slice(&keys);
        out.extend_from_slice(&tag);
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        Ok(out)
    }
}

/// The id of the master key that the store of a folder names; empty for the key of a file.
///
/// # Errors
/// The file of its data keys is missing or damaged.
pub fn master_key_id(environment: &Environment, folder: &Path) -> Result<String, EncryptionError> {
    let path = folder.join(FILE);
    let bytes = read_file(environment, &path)?;
    Ok(decode_file(&bytes, &path)?.id.to_owned())
}

/// Refuses another cipher than that of the store in a folder. There may be no store yet.
///
/// # Errors
/// The store has another cipher, or the file of its data keys is damaged.
pub fn refuse_other_cipher(
    environment: &Environment,
    folder: &Path,
    wanted: Cipher,
) -> Result<(), EncryptionError> {
    let path = folder.join(FILE);
    if !environment.files().exists(&path)? {
        return Ok(());
    }
    let bytes = read_file(environment, &path)?;
    match decode_file(&bytes, &path)?.cipher {
        found if found == wanted => Ok(()),
        found => Err(EncryptionError::OtherCipher { folder: folder.to_owned(), found, wanted }),
    }
}

fn read_file(environment: &Environment, path: &Path) -> Result<Vec<u8>, EncryptionError> {
    let files = environment.files();
    if !files.exists(path)? {
        return Err(EncryptionError::TableMissing { path: path.to_owned() });
    }
    let file = files.open(path, OpenMode::ReadOnly, Access::Buffered)?;
    let length = file.length()?;
    if length > FILE_BYTES_MAX as u64 {
        return Err(EncryptionError::TableDamaged { path: path.to_owned(), problem: "it is too long" });
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn decode_file<'b>(bytes: &'b [u8], path: &Path) -> Result<Sealed<'b>, EncryptionError> {
    let path = path.to_owned();
    Sealed::decode(bytes).map_err(|problem| match problem {
        Problem::Version(found) => EncryptionError::TableVersion { path, found },
        Problem::Damage(problem) => EncryptionError::TableDamaged { path, problem },
    })
}

fn replace(environment: &Environment, folder: &Path, bytes: &[u8]) -> Result<(), EncryptionError> {
    let (files, path) = (environment.files(), folder.join(FILE));
    let unfinished = folder.join(UNFINISHED_FILE);
    let file = files.open(&unfinished, OpenMode::CreateOrOpen, Access::Buffered)?;
    file.set_length(0)?;
    file.write_all_at(bytes, 0)?;
    file.sync_data()?;
    drop(file);
    files.rename(&unfinished, &path)?;
    files.sync_dir(folder).map_err(|source| EncryptionError::TableNotDurable { path, source })
}

#[derive(Debug, PartialEq, Eq)]
enum Problem {
    Version(u32),
    Damage(&'static str),
}

/// A table whose keys are not decrypted.
#[derive(Debug, PartialEq, Eq)]
struct Sealed<'b> {
    cipher: Cipher,
    id: &'b str,
    nonce: [u8; NONCE_BYTES],
    bound: &'b [u8],
    /// The sealed keys and the tag.
    sealed: &'b [u8],
}

impl<'b> Sealed<'b> {
    fn decode(bytes: &'b [u8]) -> Result<Sealed<'b>, Problem> {
        let damage = Problem::Damage;
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(damage("it is too short"))?;
        let header = body.first_chunk::<HEADER_BYTES>().ok_or(damage("it is too short"))?;
        if header[0..8] != MAGIC {
            return Err(damage("it does not begin as a table of keys"));
        }
        if xxh3_64(body) != u64::from_le_bytes(*checksum) {
            return Err(damage("its checksum does not hold"));
        }
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| header[at + byte]));
        if u32_at(8) != VERSION {
            return Err(Problem::Version(u32_at(8)));
        }
        let cipher = Cipher::from_number(header[12]).ok_or(damage("its cipher is unknown"))?;
        let (id_bytes, key_bytes) = (u32_at(16) as usize, u32_at(20) as usize);
        let is_whole = id_bytes <= ID_BYTES_MAX
            && key_bytes <= KEYS_MAX * RECORD_BYTES
            && body.len() == HEADER_BYTES + id_bytes + key_bytes + TAG_BYTES
            && header[13..16] == [0; 3];
        if !is_whole {
            return Err(damage("its lengths contradict each other"));
        }
        let (bound, sealed) = body.split_at(HEADER_BYTES + id_bytes);
        let id = std::str::from_utf8(&bound[HEADER_BYTES..]).map_err(|_| damage("its id is no text"))?;
        if !id.is_empty() && !crate::key_command::is_id(id) {
            return Err(damage("its id is none"));
        }
        Ok(Sealed { cipher, id, nonce: std::array::from_fn(|at| header[24 + at]), bound, sealed })
    }

    /// The keys; `None` under another master key.
    fn open(&self, master: &SecretKey) -> Option<Zeroizing<Vec<u8>>> {
        let mut sealed = Zeroizing::new(self.sealed.to_vec());
        let keys = AeadKey::new(self.cipher, master).open(self.nonce, self.bound, &mut sealed)?.len();
        sealed.truncate(keys);
        Some(sealed)
    }
}

fn decode_keys(bytes: &[u8]) -> Option<Vec<DataKey>> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(RECORD_BYTES) {
        return None;
    }
    let mut keys: Vec<DataKey> = Vec::with_capacity(bytes.len() / RECORD_BYTES);
    for record in bytes.chunks_exact(RECORD_BYTES) {
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| record[at + byte]));
        let key = DataKey {
            number: u32::from_le_bytes(std::array::from_fn(|at| record[at])),
            made_millis: u64_at(4),
            since_generation: u64_at(12),
            key: SecretKey::from_bytes(&record[20..])?,
        };
        let ascends = keys.last().map_or(key.number > 0, |last| {
            last.number < key.number && last.since_generation <= key.since_generation
        });
        if !ascends || key.number == u32::MAX {
            return None;
        }
        keys.push(key);
    }
    Some(keys)
}

/// Gives bytes to the decoders: those of a file, and those behind its encryption.
#[cfg(feature = "fuzzing")]
pub fn decode_for_fuzzing(bytes: &[u8]) {
    let _read = Sealed::decode(bytes);
    let mut whole = [&MAGIC[..], bytes].concat();
    whole.extend_from_slice(&xxh3_64(&whole).to_le_bytes());
    if let Ok(sealed) = Sealed::decode(&whole) {
        let key = SecretKey::from_bytes(&[0; KEY_BYTES]).expect("a key has so many bytes");
        assert!(sealed.open(&key).is_none(), "no input has the tag of a key");
    }
    if let Some(keys) = decode_keys(bytes) {
        assert!(keys.is_sorted_by_key(|key| key.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master(byte: u8) -> SecretKey {
        SecretKey::from_bytes(&[byte; 32]).unwrap()
    }

    fn example() -> Vec<u8> {
        let mut table = KeyTable::new(Cipher::Aes256Gcm, "store/1", 7).unwrap();
        table.add(8, 9).unwrap();
        table.encode(&master(1)).unwrap()
    }

    #[test]
    fn a_table_comes_back_under_its_master_key_alone() {
        let bytes = example();
        let sealed = Sealed::decode(&bytes).unwrap();
        assert_eq!((sealed.cipher, sealed.id), (Cipher::Aes256Gcm, "store/1"));
        assert!(sealed.open(&master(2)).is_none());
        let keys = decode_keys(&sealed.open(&master(1)).unwrap()).unwrap();
        let facts: Vec<_> =
            keys.iter().map(|key| (key.number, key.made_millis, key.since_generation)).collect();
        assert_eq!(facts, [(1, 7, 0), (2, 8, 9)]);
        assert_eq!(&bytes[..16], b"PANDOKEY\x01\0\0\0\x01\0\0\0");
        assert_eq!(bytes.len(), HEADER_BYTES + 7 + 2 * RECORD_BYTES + TAG_BYTES + CHECKSUM_BYTES);
        for key in &keys {
            assert!(
                bytes.windows(KEY_BYTES).all(|window| window != key.key.bytes()),
                "no key stands there plainly"
            );
        }
    }

    #[test]
    fn every_changed_byte_is_found_with_and_without_a_new_checksum() {
        let bytes = example();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(Sealed::decode(&changed).is_err(), "byte {at}");
            let body = changed.len() - CHECKSUM_BYTES;
            let checksum = xxh3_64(&changed[..body]).to_le_bytes();
            changed[body..].copy_from_slice(&checksum);
            let opened = Sealed::decode(&changed).ok().and_then(|sealed| sealed.open(&master(1)));
            assert!(opened.is_none() || at >= body, "byte {at}");
        }
        for length in 0..bytes.len() {
            assert!(Sealed::decode(&bytes[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn keys_that_do_not_ascend_are_refused() {
        let record = |number: u32, since: u64| {
            [&number.to_le_bytes()[..], &[0; 8], &since.to_le_bytes(), &[1; 32]].concat()
        };
        assert!(decode_keys(&[record(1, 0), record(2, 0)].concat()).is_some());
        for records in
            [[record(2, 0), record(2, 0)], [record(1, 5), record(2, 4)], [record(0, 0), record(1, 0)]]
        {
            assert!(decode_keys(&records.concat()).is_none());
        }
        assert!(decode_keys(&[]).is_none() && decode_keys(&record(1, 0)[1..]).is_none());
    }
}
