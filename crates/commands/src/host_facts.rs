//! Facts about the machine, which the process around the store finds out, for the commands that show them.

/// See the [module](self). The default says that nothing is known, as in an application's own process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// The name of the machine.
    pub name: String,
    /// The memory of the machine in bytes.
    pub memory_bytes: u64,
    /// The most memory that this process may have, where a limit is below that of the machine.
    pub memory_limit_bytes: u64,
    /// The operating system, such as `Debian GNU/Linux 12`.
    pub system_name: String,
    /// The version of its kernel.
    pub kernel_version: String,
    /// The processor, such as `AMD EPYC 7B13`.
    pub processor: String,
    /// Processors that the process may use. A thread that is bound to one of them would count one.
    pub processors: usize,
    /// Files that the process may have open.
    pub open_files_max: u64,
}
