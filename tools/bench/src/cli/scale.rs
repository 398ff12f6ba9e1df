//! `--scale FACTOR`: the post's data and the post's cache, both so much smaller, so that their ratio stays.
//!
//! Arguments that are not given are added before the command line is read: numbers of documents, `--cache-mb` for a server that the
//! tool starts and `--embedded-cache` for an engine in this process. A server that runs already is to be given that cache by its user;
//! the line that is printed says how much.

use crate::error::BenchError;
use std::ffi::OsString;

/// The size of a post.
struct Post {
    workload: &'static str,
    /// Arguments that grow with the data, and their values there.
    sizes: &'static [(&'static str, u64)],
    /// Arguments that do not.
    fixed: &'static [(&'static str, u64)],
    /// Its cache in 10^6 bytes.
    cache_mb: u64,
    /// Where that comes from.
    cache_of: &'static str,
}

const POSTS: [Post; 5] = [
    Post {
        workload: "point",
        sizes: &[("--docs", 40_000_000)],
        fixed: &[("--collections", 8)],
        // 0.83 reads a query of 740 GB: 17 % were in memory.
        cache_mb: 126_000,
        cache_of: "post A's reads per query",
    },
    Post {
        workload: "sysbench",
        sizes: &[("--docs", 1_000_000)],
        fixed: &[("--collections", 640)],
        cache_mb: 8_590,
        cache_of: "post B's 8 GB, under a cap of 16 GB",
    },
    Post {
        workload: "kv",
        sizes: &[("--rows", 105_000_000), ("--reads", 1_000_000)],
        fixed: &[],
        cache_mb: 16_000,
        cache_of: "post C's machine: all in memory",
    },
    Post {
        workload: "linkbench",
        sizes: &[("--nodes", 100_000_000)],
        fixed: &[],
        cache_mb: 30_000,
        cache_of: "post D's pool, of the larger data",
    },
    Post {
        workload: "iibench",
        sizes: &[("--docs", 2_000_000_000)],
        fixed: &[],
        cache_mb: 8_590,
        cache_of: "post E's smallest, 8 GB",
    },
];
/// Fewer documents measure nothing.
const LEAST: u64 = 100;

/// The arguments, with those of `--scale` added; without it, as they are.
pub fn with_scale(arguments: Vec<OsString>) -> Result<Vec<OsString>, BenchError> {
    let text = |argument: &OsString| argument.to_string_lossy().into_owned();
    let words: Vec<String> = arguments.iter().map(text).collect();
    let given = words.iter().enumerate().find_map(|(place, word)| {
        let behind = || words.get(place + 1).cloned().unwrap_or_default();
        if word == "--scale" { Some(behind()) } else { word.strip_prefix("--scale=").map(str::to_owned) }
    });
    let Some(given) = given else { return Ok(arguments) };
    let wrong = |cause: &str| BenchError::Option { option: "scale", cause: cause.to_owned() };
    let factor = given.parse::<f64>().ok().filter(|factor| *factor > 0.0 && *factor <= 1.0);
    let factor =
        factor.ok_or_else(|| wrong("a factor is a number above 0, at most 1: the post's own size"))?;
    let post = POSTS.iter().find(|post| words.get(1).is_some_and(|word| word == post.workload));
    let post = post.ok_or_else(|| wrong("only the posts' workloads have a size to be scaled"))?;
    let mut arguments = arguments;
    let mut add = |name: &str, value: u64| {
        let is_given = words.iter().any(|word| word == name || word.starts_with(&format!("{name}=")));
        if !is_given {
            arguments.extend([name.into(), value.to_string().into()]);
        }
    };
    let scaled = |value: u64, least: u64| ((value as f64 * factor).round() as u64).max(least);
    post.fixed.iter().for_each(|(name, value)| add(name, *value));
    post.sizes.iter().for_each(|(name, value)| add(name, scaled(*value, LEAST)));
    let cache_mb = scaled(post.cache_mb, 1);
    add("--cache-mb", cache_mb);
    add("--embedded-cache", cache_mb);
    eprintln!("scale    {factor}: a cache of {cache_mb} MB keeps the ratio to the data ({})", post.cache_of);
    Ok(arguments)
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
        let point = scaled("b point --scale 0.001").expect("possible");
        assert!(
            point.ends_with("--collections 8 --docs 40000 --cache-mb 126 --embedded-cache 126"),
            "{point}"
        );
        let iibench = scaled("b iibench --docs 7 --scale=0.01").expect("possible");
        assert!(iibench.ends_with("--docs 7 --scale=0.01 --cache-mb 86 --embedded-cache 86"), "{iibench}");
        assert_eq!(scaled("b kv --rows 3").expect("possible"), "b kv --rows 3");
        let command = crate::cli::command();
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
