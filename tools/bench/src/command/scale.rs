//! `--scale FACTOR`: the post's data and the post's cache, both so much smaller, so that their ratio stays.
//!
//! Arguments that are not given are added before the command line is read: numbers of documents, `--cache-mb`
//! for a server that the tool starts with a command that takes a cache, and `--embedded-cache` for an engine
//! in this process. A server that runs already is to be given that cache by its user; the line that is
//! printed says how much.

use crate::cli::URI_VARIABLE;
use crate::cli::launch::CACHE_WORD;
use crate::client::EMBEDDED_SCHEME;
use crate::error::BenchError;
use crate::report::posts::posts;
use std::ffi::OsString;

/// Fewer documents measure nothing.
const LEAST: u64 = 100;

/// The arguments, with those of `--scale` added; without it, as they are.
pub fn with_scale(arguments: Vec<OsString>) -> Result<Vec<OsString>, BenchError> {
    let text = |argument: &OsString| argument.to_string_lossy().into_owned();
    let words: Vec<String> = arguments.iter().map(text).collect();
    let Some(given) = value_of(&words, "--scale") else { return Ok(arguments) };
    let wrong = |cause: &str| BenchError::Option { option: "scale", cause: cause.to_owned() };
    let factor = given.parse::<f64>().ok().filter(|factor| *factor > 0.0 && *factor <= 1.0);
    let factor =
        factor.ok_or_else(|| wrong("a factor is a number above 0, at most 1: the post's own size"))?;
    let post = posts().iter().find(|post| words.get(1).is_some_and(|word| *word == post.workload));
    let size = &post.ok_or_else(|| wrong("only the posts' workloads have a size to be scaled"))?.size;
    let mut arguments = arguments;
    let mut add = |name: &str, value: u64| {
        let name = format!("--{name}");
        let is_given = words.iter().any(|word| *word == name || word.starts_with(&format!("{name}=")));
        if !is_given {
            arguments.extend([OsString::from(name), value.to_string().into()]);
        }
    };
    let scaled = |value: u64, least: u64| ((value as f64 * factor).round() as u64).max(least);
    size.fixed.iter().for_each(|(name, value)| add(name, *value));
    size.grows.iter().for_each(|(name, value)| add(name, scaled(*value, LEAST)));
    let cache_mb = scaled(size.cache_mb, 1);
    let uri = value_of(&words, "--uri").or_else(|| std::env::var(URI_VARIABLE).ok()).unwrap_or_default();
    if uri.starts_with(EMBEDDED_SCHEME) {
        add("embedded-cache", cache_mb);
    } else if value_of(&words, "--server-command").is_some_and(|command| command.contains(CACHE_WORD)) {
        add("cache-mb", cache_mb);
    }
    err_line!("scale    {factor}: a cache of {cache_mb} MB keeps the ratio to the data ({})", size.cache_of);
    Ok(arguments)
}

/// The value of an option on a command line that is not yet read.
fn value_of(words: &[String], option: &str) -> Option<String> {
    words.iter().enumerate().find_map(|(place, word)| match word.strip_prefix(option)? {
        "" => Some(words.get(place + 1).cloned().unwrap_or_default()),
        behind => behind.strip_prefix('=').map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(arguments: &str) -> Result<String, BenchError> {
        let all = arguments.split_whitespace().map(Into::into).collect();
        let all = with_scale(all)?;
        Ok(all.iter().map(|argument| argument.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn data_and_cache_shrink_together_and_what_was_given_stays() {
        let point = scaled("b point --scale 0.001 --uri embedded:betree").expect("possible");
        assert!(point.ends_with("--collections 8 --docs 40000 --embedded-cache 126"), "{point}");
        let iibench =
            scaled("b iibench --docs 7 --scale=0.01 --server-command={cache_mb}").expect("possible");
        assert!(
            iibench.ends_with("--docs 7 --scale=0.01 --server-command={cache_mb} --cache-mb 86"),
            "{iibench}"
        );
        let running = scaled("b point --scale 0.001 --uri mongodb://a").expect("possible");
        assert!(running.ends_with("--docs 40000"), "its cache is its user's to give: {running}");
        assert_eq!(scaled("b kv --rows 3").expect("possible"), "b kv --rows 3");
        let command = clap::Command::new("b").subcommand(crate::command::sysbench::command());
        let understood = with_scale("b sysbench --scale 0.01".split_whitespace().map(Into::into).collect());
        assert!(command.try_get_matches_from(understood.expect("possible")).is_ok());
    }

    #[test]
    fn no_factor_and_no_workload_of_a_post_are_refused() {
        for arguments in
            ["b point --scale 2", "b point --scale 0", "b point --scale", "b compare --scale 0.1"]
        {
            assert!(scaled(arguments).is_err(), "{arguments}");
        }
    }
}
