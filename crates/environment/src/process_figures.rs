//! The figures of this process, as its operating system counts them.
//!
//! A simulated environment has none of its own: its tests share one process.

/// The figures at one moment. One that the system does not tell is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// Bytes in main memory.
    pub resident_bytes: u64,
    /// The most bytes that were in main memory at once.
    pub resident_bytes_max: u64,
    /// Bytes of address space.
    pub virtual_bytes: u64,
    /// Processor time in the program, in microseconds.
    pub user_micros: u64,
    /// Processor time in the kernel, in microseconds.
    pub system_micros: u64,
    /// Page faults that needed no read of the device.
    pub minor_faults: u64,
    /// Page faults that needed a read of the device.
    pub major_faults: u64,
    /// Blocks of 512 bytes that were read from devices.
    pub input_blocks: u64,
    /// Blocks of 512 bytes that were written to devices.
    pub output_blocks: u64,
    /// Times that a thread waited.
    pub voluntary_switches: u64,
    /// Times that a thread had to give way.
    pub involuntary_switches: u64,
    /// Threads.
    pub threads: u64,
}

/// Asks for the figures.
pub fn process_figures() -> ProcessFigures {
    let mut figures = ProcessFigures::default();
    add_usage(&mut figures);
    add_memory(&mut figures);
    figures
}

fn add_usage(figures: &mut ProcessFigures) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure, whose address is valid, and keeps no pointer to it.
    let outcome = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    if outcome != 0 {
        return;
    }
    // SAFETY: all bit patterns of the structure are valid, and it was zeroed before.
    let usage = unsafe { usage.assume_init() };
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    figures.user_micros = micros(usage.ru_utime);
    figures.system_micros = micros(usage.ru_stime);
    figures.resident_bytes_max = count(usage.ru_maxrss) * 1024;
    figures.minor_faults = count(usage.ru_minflt);
    figures.major_faults = count(usage.ru_majflt);
    figures.input_blocks = count(usage.ru_inblock);
    figures.output_blocks = count(usage.ru_oublock);
    figures.voluntary_switches = count(usage.ru_nvcsw);
    figures.involuntary_switches = count(usage.ru_nivcsw);
}

/// Adds what `/proc/self/status` has; other systems have no such file.
fn add_memory(figures: &mut ProcessFigures) {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    for line in status.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let mut words = value.split_ascii_whitespace();
        let number: u64 = words.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        match name {
            "VmRSS" => figures.resident_bytes = number * 1024,
            "VmSize" => figures.virtual_bytes = number * 1024,
            "Threads" => figures.threads = number,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_threads_and_time() {
        let figures = process_figures();
        assert!(figures.resident_bytes > 0 && figures.virtual_bytes >= figures.resident_bytes, "{figures:?}");
        assert!(figures.resident_bytes_max > 0 && figures.threads > 0, "{figures:?}");
        assert!(figures.user_micros + figures.system_micros > 0, "{figures:?}");
    }
}
