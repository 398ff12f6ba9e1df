//! The options of the engine `lmdb`.

/// Options of a store in LMDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LmdbOptions {
    /// Address space for LMDB's map, in bytes. The file can grow to this length before the map has to grow,
    /// which waits for a moment without other transactions. It costs no memory and no disk. Default: 1 TiB;
    /// where the system grants less, a half, a quarter and so on.
    pub map_bytes: usize,
    /// Transactions that may live at once; more are refused as [`Busy`](pando_storage::ErrorKind::Busy).
    /// Default: 4,096, of 64 bytes each.
    pub readers_max: u32,
}

impl Default for LmdbOptions {
    fn default() -> LmdbOptions {
        LmdbOptions { map_bytes: 1 << 40, readers_max: 4_096 }
    }
}
