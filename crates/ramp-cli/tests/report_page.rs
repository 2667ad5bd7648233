//! The report's page: nothing in the data can break it, it needs nothing from outside, and it works in a browser.

mod report_samples;

use ramp_cli::report::{Report, page};
use report_samples::{HOSTILE, chain, hostile, mixed, questionnaire, sixty, sparse};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The data block as the browser's parser would cut it out: up to the first thing that can end a script.
fn data(page: &str) -> &str {
    let mark = r#"<script type="application/json" id="report">"#;
    let start = page.find(mark).expect("a data block") + mark.len();
    let rest = &page[start..];
    &rest[..rest.to_lowercase().find("</script").expect("its end")]
}

#[test]
fn the_data_come_out_of_the_page_as_they_went_in() {
    for report in [
        questionnaire(),
        chain(),
        mixed(),
        hostile(),
        Report::default(),
    ] {
        let page = page(&report);
        let read: Value = serde_json::from_str(data(&page)).expect("valid JSON");
        assert_eq!(read["title"], report.title.as_str());
        assert_eq!(
            read["latents"].as_array().map(Vec::len),
            Some(report.latents.len())
        );
        for (column, read) in report
            .columns
            .iter()
            .zip(read["columns"].as_array().unwrap())
        {
            assert_eq!(read["name"], column.name.as_str());
        }
    }
}

#[test]
fn unknown_numbers_are_null_and_posteriors_keep_five_digits() {
    let mut report = mixed();
    report.latents[0].coordinates[0].mean[0] = 1.234_567_9;
    let read: Value = serde_json::from_str(data(&page(&report))).unwrap();
    assert!(read["latents"][8]["coordinates"][0]["mean"][7].is_null());
    assert!(read["latents"][9]["spread"].is_null());
    let kept = read["latents"][0]["coordinates"][0]["mean"][0]
        .as_f64()
        .unwrap();
    assert!((kept - 1.2346).abs() < 1e-6, "{kept}");
}

#[test]
fn names_cannot_leave_their_place() {
    let page = page(&hostile());
    for name in HOSTILE {
        assert!(!page.contains(name), "{name} stands in the page as it is");
    }
    let safe = data(&page);
    assert!(!safe.contains(['<', '>', '&', '\u{2028}']));
    // The data block, the script, and nothing else.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
}

#[test]
fn the_page_stands_alone() {
    let page = page(&questionnaire());
    for outside in [
        "http:",
        "https:",
        "src=",
        "href=",
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
        "@@",
    ] {
        assert!(!page.contains(outside), "the page contains {outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

/// `$CHROME`, or the first Chromium in the path.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROME") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// Runs before anything of the page: collects whatever goes wrong.
const LISTEN: &str = r#"<script>
window.wrong = [];
addEventListener("error", (e) => wrong.push(`${e.message} at line ${e.lineno}`));
addEventListener("unhandledrejection", (e) => wrong.push(String(e.reason)));
addEventListener("securitypolicyviolation", (e) => wrong.push(`request for ${e.blockedURI}`));
for (const kind of ["error", "warn"]) console[kind] = (...words) => wrong.push(words.join(" "));
</script>"#;

/// Runs after it: uses the page as a reader would and writes down what happened.
const PROBE: &str = r##"<script>
try {
  const said = {};
  const $ = (query) => document.querySelector(query);
  const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map((c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (query) => {
    const [a, b] = [getComputedStyle($(query)).color, getComputedStyle(document.body).backgroundColor].map(luminance);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const overflow = () => document.documentElement.scrollWidth - innerWidth;
  said.width = innerWidth;
  said.overflow = overflow();
  said.dark = luminance(getComputedStyle(document.body).backgroundColor) < 0.2;
  said.contrast = Math.min(contrast(".note"), contrast("h2"), contrast("#facts dt"));
  said.circles = document.querySelectorAll("#tree circle:not(.warned)").length;
  said.boxes = document.querySelectorAll("#tree rect.observed").length;
  said.factors = document.querySelectorAll("#tree rect.factor").length;
  // Labels of the tree that lie on one another, or stick out of it.
  const labels = [...document.querySelectorAll("#tree text")].map((t) => t.getBoundingClientRect());
  const whole = $("#tree svg").getBoundingClientRect();
  said.clashes = labels.filter((a, i) => labels.some((b, j) => i < j && a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)).length
    + labels.filter((a) => a.left < whole.left - 1 || a.right > whole.right + 1).length;
  said.tree = $("#tree").textContent;
  said.summary = $("#summary").textContent;
  said.says = $("#summary").textContent + $("#latents").textContent + $("#facts").textContent;
  said.code = document.querySelectorAll("#latents code").length;
  said.rows = document.querySelectorAll("#latents tbody tr:not(.says)").length;
  said.histograms = document.querySelectorAll("#distributions figure").length;
  said.missing = document.querySelectorAll("#missing rect").length;
  said.settings = $("#settings").textContent;
  said.labelled = [...document.querySelectorAll("select, input")].every((s) => s.labels.length === 1);
  said.steps = !$("#steps-section").hidden && $("#steps svg") !== null;
  said.ranks = document.querySelectorAll("#ranks rect.bar").length;
  said.verdict = $("#ranks-note").textContent;
  said.bands = document.querySelectorAll("#over-time figure path.band").length;
  said.seen = document.querySelectorAll("#over-time circle.seen").length;
  said.foreign = document.querySelectorAll("img, iframe, link, b:not(.note b), [onload], [onerror]").length + (typeof broken === "undefined" ? 0 : 1);

  const drawn = () => $("#scatter").innerHTML;
  const choose = (id, value) => {
    const before = drawn();
    $(id).value = value;
    $(id).dispatchEvent(new Event("change", { bubbles: true }));
    return drawn() !== before;
  };
  const values = (id) => [...$(id).options].map((o) => o.value);
  said.dots = document.querySelectorAll("#scatter g circle").length;
  said.across = values("#across").length > 1 && choose("#across", values("#across").find((v) => v !== $("#across").value && v !== $("#up").value));
  said.up = values("#up").length > 1 && choose("#up", values("#up").find((v) => v !== $("#up").value));
  said.colour = choose("#colour", values("#colour").find((v) => v !== "-1" && v !== $("#colour").value));
  said.hollow = [...$("#colour").options].some((o) => { choose("#colour", o.value); return document.querySelectorAll("#scatter circle[fill=none]").length > 0 && $("#legend").textContent.includes("missing"); });
  for (const v of values("#colour")) choose("#colour", v);
  for (const v of values("#across")) choose("#across", v);
  said.overflowAfter = overflow();

  const spot = $("#scatter g circle").getBoundingClientRect();
  const before = $("#scatter-said").textContent;
  $("#scatter svg").dispatchEvent(new PointerEvent("pointermove", { clientX: spot.x + 2, clientY: spot.y + 2 }));
  said.pointed = $("#scatter-said").textContent !== before && $("#scatter .pointed circle") !== null;
  said.own = $("#scatter .pointed .own") !== null;
  $("#training svg").dispatchEvent(new KeyboardEvent("keydown", { key: "Home", cancelable: true }));
  said.first = $("#training .said").textContent;
  const themed = () => getComputedStyle(document.body).backgroundColor;
  const seen = new Set([0, 1, 2].map(() => { $("#theme").click(); return themed(); }));
  said.themes = seen.size;
  said.wrong = window.wrong;
  parent.postMessage(encodeURIComponent(JSON.stringify(said)), "*");
} catch (error) {
  parent.postMessage(encodeURIComponent(JSON.stringify({ wrong: [...window.wrong, String(error.stack)] })), "*");
}
</script>"##;

/// For pages on which there is nothing to choose: whether something went wrong.
const GLANCE: &str = r#"<script>
const said = { wrong, overflow: document.documentElement.scrollWidth - innerWidth, summary: document.getElementById("summary").textContent };
parent.postMessage(encodeURIComponent(JSON.stringify(said)), "*");
</script>"#;

/// Holds the page in a frame, because a window of Chromium is never narrower than 500 pixels.
const FRAME: &str = r#"<!DOCTYPE html><body style="margin:0"><pre id="outcome"></pre>
<script>addEventListener("message", (e) => { document.getElementById("outcome").textContent = e.data; });</script>
<iframe style="border:0" width="WIDTH" height="1000" src="page.html#theme=THEME"></iframe>"#;

/// Ends a browser that hangs, however the test leaves.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens a page in a window of a size and gives what the probe wrote.
fn open(
    browser: &Path,
    folder: &Path,
    page: &str,
    probe: &str,
    width: usize,
    theme: &str,
) -> Value {
    let probed = page
        .replacen(
            "<meta charset=\"utf-8\">",
            &format!("<meta charset=\"utf-8\">{LISTEN}"),
            1,
        )
        .replacen("</body>", &format!("{probe}</body>"), 1);
    std::fs::write(folder.join("page.html"), probed).unwrap();
    let framed = FRAME
        .replace("WIDTH", &width.to_string())
        .replace("THEME", theme);
    let file = folder.join("frame.html");
    std::fs::write(&file, framed).unwrap();
    let dumped = folder.join("dumped.html");
    let child = Command::new(browser)
        .args("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars".split(' '))
        .args("--disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage".split(' '))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--window-size={},1000", width.max(500)))
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(File::create(&dumped).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .expect("the browser starts");
    let mut running = Running(child);
    let started = Instant::now();
    while running.0.try_wait().unwrap().is_none() {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "the browser hangs"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let dom = std::fs::read_to_string(&dumped).unwrap();
    let mark = "<pre id=\"outcome\">";
    let start = dom.rfind(mark).expect("the probe ran") + mark.len();
    let coded = &dom[start..start + dom[start..].find("</pre>").unwrap()];
    serde_json::from_slice(&percent_decoded(coded)).expect("the probe wrote its outcome")
}

fn percent_decoded(coded: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = coded.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = (byte == b'%').then(|| std::str::from_utf8(&after[..2]).unwrap());
        bytes.push(hex.map_or(byte, |hex| u8::from_str_radix(hex, 16).unwrap()));
        rest = &after[if hex.is_some() { 2 } else { 0 }..];
    }
    bytes
}

#[test]
fn readers_can_use_it_wide_and_narrow_light_and_dark() {
    let Some(browser) = browser() else {
        println!("skipped: no Chromium in the path; set CHROME to one");
        return;
    };
    for (label, report) in [
        ("questionnaire", questionnaire()),
        ("chain", chain()),
        ("mixed", mixed()),
        ("sixty", sixty()),
        ("hostile", hostile()),
    ] {
        let page = page(&report);
        // Left there to be looked at.
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{label}.html"));
        std::fs::write(kept, &page).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (width, theme) in [(1200, "light"), (400, "dark")] {
            let said = open(&browser, folder.path(), &page, PROBE, width, theme);
            let of = format!("{label} at {width}: {said:#}");
            assert_eq!(said["wrong"], Value::Array(Vec::new()), "{of}");
            assert_eq!(said["width"], width, "{of}");
            for held in ["overflow", "overflowAfter"] {
                assert!(said[held].as_f64().unwrap() <= 0.0, "{held}, {of}");
            }
            assert_eq!(said["dark"], theme == "dark", "{of}");
            assert!(said["contrast"].as_f64().unwrap() >= 4.5, "{of}");
            for works in ["across", "up", "colour", "hollow", "pointed", "labelled"] {
                assert_eq!(said[works], true, "{works}, {of}");
            }
            assert_eq!(said["themes"], 2, "{of}");
            assert_eq!(said["foreign"], 0, "{of}");
            assert_eq!(said["clashes"], 0, "{of}");
            assert!(
                said["first"]
                    .as_str()
                    .unwrap()
                    .starts_with("iteration 0: learned from"),
                "{of}"
            );

            let steps = report.sequence.as_ref().map_or(1, |_| 4);
            let observed = report.variables.iter().filter(|v| !v.latent).count();
            assert_eq!(said["circles"], steps * report.latents.len(), "{of}");
            assert_eq!(said["boxes"], steps * observed, "{of}");
            assert_eq!(
                said["factors"],
                report.factors.iter().filter(|f| f.len() > 2).count(),
                "{of}"
            );
            assert_eq!(said["rows"], report.latents.len(), "{of}");
            assert_eq!(said["own"], report.sequence.is_some(), "{of}");
            assert_eq!(said["steps"], report.sequence.is_some(), "{of}");
            let bands = report.over_time.iter().flat_map(|o| &o.bands);
            assert_eq!(said["bands"], bands.clone().count(), "{of}");
            let (bars, verdict) = match &report.ranks {
                Some(ranks) => (ranks.histogram.len(), &ranks.verdict[..]),
                None => (0, ""),
            };
            assert_eq!(
                (&said["ranks"], &said["verdict"]),
                (&bars.into(), &verdict.into()),
                "{of}"
            );
            let seen = bands.flat_map(|b| &b.observed).filter(|x| x.is_finite());
            assert_eq!(said["seen"], seen.count(), "{of}");
            assert!(
                said["missing"].as_u64().unwrap() > report.columns.len() as u64,
                "{of}"
            );
            let coordinates: usize = report.latents.iter().map(|l| l.coordinates.len()).sum();
            assert_eq!(said["histograms"], coordinates, "{of}");
            assert_eq!(said["dots"], report.sampled_rows, "{of}");
            assert_eq!(said["settings"], report.settings.as_str(), "{of}");
            let said_of = |part: &str| said[part].as_str().unwrap().to_string();
            assert!(said_of("summary").contains(&report.data), "{of}");
            let columns = format!("behind {} column", report.observed_columns);
            assert!(said_of("summary").contains(&columns), "{columns}, {of}");
            // Names between backticks are set as code; nobody reads the backticks.
            let warned = report.latents.iter().flat_map(|l| &l.warnings);
            let marked: usize = warned.map(|w| w.matches('`').count() / 2).sum();
            assert_eq!(said["code"], marked, "{of}");
            assert!(label == "hostile" || !said_of("says").contains('`'), "{of}");
            for latent in &report.latents {
                let nats = format!("{:.2}", latent.free_energy.held_out.unwrap()).replace('-', "−");
                assert!(said_of("tree").contains(&nats), "{nats}, {of}");
            }
        }
    }
}

#[test]
fn a_report_of_next_to_nothing_still_opens() {
    let Some(browser) = browser() else {
        println!("skipped: no Chromium in the path; set CHROME to one");
        return;
    };
    for report in [sparse(), Report::default()] {
        let folder = tempfile::tempdir().unwrap();
        let said = open(
            &browser,
            folder.path(),
            &page(&report),
            GLANCE,
            400,
            "light",
        );
        assert_eq!(said["wrong"], Value::Array(Vec::new()), "{said:#}");
        assert!(said["overflow"].as_f64().unwrap() <= 0.0, "{said:#}");
        let summary = said["summary"].as_str().unwrap();
        assert!(
            !summary.contains("NaN") && !summary.contains("undefined"),
            "{summary}"
        );
    }
}
