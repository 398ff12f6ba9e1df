//! A converter between the inputs that are checked in and a fuzzer's folders.
//!
//! ```text
//! cargo run -p pando-fuzzing --example corpus -- unpack fuzz/corpus        # a folder for each target
//! cargo run -p pando-fuzzing --example corpus -- pack fuzz/corpus filter   # a target's shortest inputs
//! ```

use std::path::Path;
use std::{env, fs, io};

use pando_fuzzing::corpus;
use pando_fuzzing::targets::{ALL, Target};

/// Inputs that a file has at most, but for those that it has already.
const INPUTS_MAX: usize = 120;
/// Longer ones are left to the fuzzer.
const BYTES_MAX: usize = 400;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["unpack", folder] => ALL.iter().try_for_each(|target| unpack(Path::new(folder), target)),
        ["pack", folder, target] => pack(Path::new(folder), target),
        _ => Err(io::Error::other("unpack FOLDER, or pack FOLDER TARGET")),
    }
}

fn unpack(folder: &Path, target: &Target) -> io::Result<()> {
    let folder = folder.join(target.name);
    fs::create_dir_all(&folder)?;
    let inputs = corpus::inputs(target.name)?;
    for (at, input) in inputs.into_iter().chain((target.examples)()).enumerate() {
        fs::write(folder.join(format!("known-{at}")), input)?;
    }
    Ok(())
}

fn pack(folder: &Path, target: &str) -> io::Result<()> {
    let mut inputs = corpus::inputs(target).unwrap_or_default();
    let files = fs::read_dir(folder.join(target))?.map(|entry| fs::read(entry?.path()));
    let mut found = files.collect::<io::Result<Vec<_>>>()?;
    found.sort_unstable_by_key(|input| (input.len(), input.clone()));
    // Evenly from short to long: the shortest of all go few ways.
    found.retain(|input| input.len() <= BYTES_MAX && !inputs.contains(input));
    let step = found.len().div_ceil(INPUTS_MAX.saturating_sub(inputs.len()).max(1)).max(1);
    inputs.extend(found.into_iter().rev().step_by(step));
    inputs.sort_unstable_by_key(|input| (input.len(), input.clone()));
    let lines: Vec<String> = inputs.iter().map(|input| corpus::to_hex(input) + "\n").collect();
    fs::write(corpus::path_of(target), lines.concat())
}
