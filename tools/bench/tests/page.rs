//! Report pages in a real headless browser: nothing is wider than a phone, charts are drawn, pictures and
//! paper come out.
//!
//! Needs `chromium` in the search path (Debian's package `chromium`), or what `CHROMIUM` names.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A4 across less its margins, in CSS pixels.
const PAPER: u32 = 1047;
/// The width of a small phone.
const PHONE: u32 = 360;

/// The names of colours that are too near to the background's, with their contrast.
const WEAK_CONTRASTS: &str = r#"(() => {
    const style = page.defaultView.getComputedStyle(page.documentElement);
    const channels = name => {
        const hex = style.getPropertyValue(name).trim().slice(1);
        const pairs = hex.length === 3 ? [...hex].map(digit => digit + digit) : hex.match(/../g);
        return pairs.map(pair => parseInt(pair, 16) / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    };
    const light = name => { const [r, g, b] = channels(name); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const contrast = name => {
        const both = [light(name), light('--back')].sort((a, b) => b - a);
        return (both[0] + 0.05) / (both[1] + 0.05);
    };
    const least = { '--text': 4.5, '--soft': 4.5, '--c0': 3, '--c1': 3, '--c2': 3, '--c3': 3, '--c4': 3, '--c5': 3 };
    return Object.keys(least).filter(name => !(contrast(name) >= least[name])).map(name => name + ' ' + contrast(name)).join(', ');
})()"#;

/// Texts of charts that stand out of their drawing.
const CUT_TEXTS: &str = r#"(() => {
    const inside = text => {
        const box = text.getBBox(), view = text.ownerSVGElement.viewBox.baseVal;
        return box.x >= view.x - 0.5 && box.x + box.width <= view.x + view.width + 0.5;
    };
    return [...page.querySelectorAll('svg text')].filter(text => !inside(text)).map(text => text.textContent).join(' | ');
})()"#;

/// How many parts are wider than their room without a background that says so.
const SCROLLING_WITHOUT_SIGN: &str = r#"[...page.querySelectorAll('.wide')]
    .filter(part => part.scrollWidth > part.clientWidth)
    .filter(part => !page.defaultView.getComputedStyle(part).backgroundImage.includes('gradient')).length"#;

fn bench(arguments: &[&str], folder: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_pando-bench")).args(arguments).current_dir(folder).output();
    let output = output.expect("the tool starts");
    assert!(output.status.success(), "{arguments:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// A page with a load, runs of two client numbers, and statements by kind.
fn page(folder: &Path) -> PathBuf {
    let common =
        ["--uri", "embedded:memory", "--data-dir", "data", "--out", "out", "--warmup", "0", "--no-ceiling"];
    let point = ["point", "--collections", "1", "--docs", "200", "--clients", "1,2", "--duration", "2"];
    let sysbench = ["sysbench", "--collections", "1", "--docs", "200", "--clients", "2", "--duration", "3"];
    for arguments in [&point[..], &sysbench[..]] {
        bench(
            &[arguments, &common[..], &["--label", "server=memory", "--label", "cache=8 GB"]].concat(),
            folder,
        );
    }
    bench(&["report", "out"], folder);
    folder.join("out/report.html")
}

fn chromium(folder: &Path, arguments: &[&str]) -> String {
    let program = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let output = Command::new(&program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--allow-file-access-from-files",
        ])
        .arg(profile)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "this test opens pages in a browser: install `{program}`, or name one by CHROMIUM ({error})"
            )
        });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a script finds in the page, which is shown in a frame so wide.
fn found_in(folder: &Path, page: &Path, width: u32, script: &str) -> String {
    let frame = format!(
        "<iframe id=\"f\" width=\"{width}\" height=\"800\" src=\"file://{}\"></iframe><pre id=\"found\"></pre><script>\
         f.onload = () => {{ const page = f.contentDocument; found.textContent = String({script}); }};</script>",
        page.display()
    );
    std::fs::write(folder.join("frame.html"), frame).expect("writable");
    let address = format!("file://{}", folder.join("frame.html").display());
    let dom = chromium(folder, &["--virtual-time-budget=5000", "--dump-dom", &address]);
    let behind = dom.split("<pre id=\"found\">").nth(1).unwrap_or_default();
    behind.split("</pre>").next().unwrap_or_default().to_owned()
}

#[test]
fn a_report_page_reads_well_on_phones_screens_and_paper() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let page = page(folder.path());
    let width = found_in(folder.path(), &page, PHONE, "page.documentElement.scrollWidth");
    assert_eq!(width, PHONE.to_string(), "nothing sticks out on a phone");
    assert_eq!(
        found_in(folder.path(), &page, PHONE, CUT_TEXTS),
        "",
        "no number of a chart is cut off on a phone"
    );
    let script = "page.querySelector('h1 + p + section .verdict').getBoundingClientRect().bottom < 800";
    assert_eq!(found_in(folder.path(), &page, PHONE, script), "true", "the verdict is on the first screen");
    let signs: u32 = found_in(folder.path(), &page, PHONE, SCROLLING_WITHOUT_SIGN).parse().expect("a number");
    assert_eq!(signs, 0, "a table that scrolls has a shadow at its edge");
    // A drawn line has an extent; charts that could not be drawn have none.
    let script = "[...page.querySelectorAll('polyline')].filter(line => line.getBBox().width > 100).length";
    let lines: u32 = found_in(folder.path(), &page, 1200, script).parse().expect("a number");
    assert!(lines >= 4, "{lines} lines are drawn");
    // The key of a line in a legend has the line's dashes.
    let script = "[...page.querySelectorAll('figure')].filter(figure => figure.querySelector('svg.key')).every(figure => {
        const dashes = part => page.defaultView.getComputedStyle(part).strokeDasharray;
        const all = kind => [...figure.querySelectorAll(kind)].map(dashes).join();
        return all('polyline') === all('svg.key line');
    })";
    assert_eq!(found_in(folder.path(), &page, 1200, script), "true");
    let script = "getComputedStyle(page.body).backgroundColor != getComputedStyle(page.body).color";
    assert_eq!(found_in(folder.path(), &page, 1200, script), "true");
    // Paper does not scroll: what its styles make of the page must not be wider than A4 across.
    let on_paper = folder.path().join("paper.html");
    let text = std::fs::read_to_string(&page).expect("readable");
    std::fs::write(&on_paper, text.replace("@media print", "@media screen")).expect("writable");
    let width = found_in(folder.path(), &on_paper, PAPER, "page.documentElement.scrollWidth");
    assert_eq!(width, PAPER.to_string(), "nothing is cut off on paper");
    let script = "[...page.querySelectorAll('.pairs')].filter(part => part.children.length > 1)
        .every(part => part.children[0].getBoundingClientRect().right < part.children[1].getBoundingClientRect().left)";
    let found = found_in(folder.path(), &on_paper, PAPER, script);
    assert_eq!(found, "true", "charts stand two beside each other on paper");
    let script =
        "[...page.querySelectorAll('pre')].filter(part => part.getBoundingClientRect().height > 0).length";
    assert_eq!(found_in(folder.path(), &on_paper, PAPER, script), "0", "raw parameters stay on the screen");
    for (media, colours) in
        [("", "light"), ("@media (prefers-color-scheme: dark)", "dark"), ("@media print", "printed")]
    {
        let shown = folder.path().join(format!("{colours}.html"));
        // A rule without a condition says more than one with: what stands in braces is as if the condition
        // held.
        std::fs::write(
            &shown,
            if media.is_empty() { text.clone() } else { text.replace(media, "@media screen") },
        )
        .expect("writable");
        let weak = found_in(folder.path(), &shown, 1000, WEAK_CONTRASTS);
        assert_eq!(weak, "", "{colours}: to be read, text needs a contrast of 4.5, a line of 3");
    }
    let address = format!("file://{}", page.display());
    chromium(folder.path(), &["--window-size=1200,2000", "--screenshot=screen.png", &address]);
    chromium(folder.path(), &["--print-to-pdf=paper.pdf", &address]);
    for (file, least) in [("screen.png", 20_000), ("paper.pdf", 10_000)] {
        let size = std::fs::metadata(folder.path().join(file)).expect("the browser wrote it").len();
        assert!(size > least, "{file}: {size} bytes");
    }
}
