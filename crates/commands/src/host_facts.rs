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

impl HostFacts {
    /// The machine's name with the port of an address, as MongoDB shows a server; the address where the name
    /// is not known.
    pub fn named(&self, address: &str) -> String {
        match address.rsplit_once(':') {
            Some((_, port)) if !self.name.is_empty() => format!("{}:{port}", self.name),
            _ if self.name.is_empty() => address.to_owned(),
            _ => self.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_machine_and_port() {
        let facts = HostFacts { name: "vm".to_owned(), ..HostFacts::default() };
        assert_eq!(facts.named("0.0.0.0:27018"), "vm:27018");
        assert_eq!(facts.named("[::1]:27018"), "vm:27018");
        assert_eq!(facts.named("/run/pando.sock"), "vm");
        assert_eq!(HostFacts::default().named("127.0.0.1:27017"), "127.0.0.1:27017");
    }
}
