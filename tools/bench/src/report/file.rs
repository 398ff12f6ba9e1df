//! One JSON document per run, with all that is needed to repeat it and to believe it.

use super::{Figures, warnings};
use crate::counters::{Facts, FolderSize, ProcessId};
use crate::error::BenchError;
use crate::target::ServerFacts;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A run in all its circumstances.
#[derive(Debug, serde::Serialize)]
pub struct RunFile<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The version of this tool.
    pub tool_version: &'a str,
    /// The tool's command line.
    pub command_line: Vec<String>,
    /// When the file was written, in seconds since 1970.
    pub written_unix_s: u64,
    /// Whether clients wait for their reply before they send again.
    pub closed_loop: bool,
    /// The workload's own parameters, the seed among them.
    pub parameters: serde_json::Value,
    /// The address of the server.
    pub server_address: String,
    /// What it says about itself.
    pub server: &'a ServerFacts,
    /// Its process.
    pub server_process: Option<ProcessId>,
    /// The machine of the tool, and of the server if it runs here.
    pub machine: &'a Facts,
    /// Which counter the disk figures come from.
    pub disk_source: &'a str,
    /// The size of the data folder after the run.
    pub data_folder_size: Option<FolderSize>,
    /// The tool's own ceiling with as many clients, in operations per second.
    pub ceiling: Option<f64>,
    /// The numbers.
    pub figures: &'a Figures,
    /// What makes them doubtful.
    pub warnings: Vec<String>,
    /// Whether they are no measurement.
    pub flagged: bool,
}

impl<'a> RunFile<'a> {
    /// Writes it into a folder, which is made if it is not there; gives the file's path.
    pub fn write(&self, folder: &Path, clients: u32) -> Result<PathBuf, BenchError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| BenchError::WriteReport { path: folder.to_owned(), source })?;
        let path = folder.join(format!("{}-{}-c{clients}.json", self.workload, self.written_unix_s));
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other);
        text.and_then(|text| std::fs::write(&path, text + "\n"))
            .map_err(|source| BenchError::WriteReport { path: path.clone(), source })?;
        Ok(path)
    }
}

/// What is the same in all runs of one call of the tool.
#[derive(Debug)]
pub struct Circumstances {
    /// The address of the server.
    pub server_address: String,
    /// What it says about itself.
    pub server: ServerFacts,
    /// Its process.
    pub server_process: Option<ProcessId>,
    /// The machine.
    pub machine: Facts,
    /// Which counter the disk figures come from.
    pub disk_source: String,
}

impl Circumstances {
    /// The document of one run.
    pub fn run_file<'a>(
        &'a self,
        workload: &'a str,
        parameters: serde_json::Value,
        figures: &'a Figures,
        ceiling: Option<f64>,
    ) -> RunFile<'a> {
        RunFile {
            workload,
            tool_version: env!("CARGO_PKG_VERSION"),
            command_line: std::env::args().collect(),
            written_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            closed_loop: true,
            parameters,
            server_address: self.server_address.clone(),
            server: &self.server,
            server_process: self.server_process,
            machine: &self.machine,
            disk_source: &self.disk_source,
            data_folder_size: self.machine.data_folder.as_deref().map(FolderSize::of),
            ceiling,
            figures,
            warnings: warnings::warnings(figures, ceiling),
            flagged: warnings::is_flagged(figures),
        }
    }
}
