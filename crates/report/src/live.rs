//! The live view: the page of a run that goes on, in the design of reports. It is fed by a stream of events.

use nicforge_record::Record;

use super::csv::plain;
use super::html::{escape, head, tables};

/// What draws each message of the stream.
const SCRIPT: &str = include_str!("live.js");

/// Sections that the script fills: its id there, heading, how to read it.
const PLOTS: [(&str, &str, &str); 3] = [
    ("rates", "Frames a second", "All ports together, the last two minutes."),
    ("taken", "Frames that each worker takes", "A second, from its receive rings of all ports."),
    ("drops", "Frames dropped", "A second, by cause; ports and workers together."),
];
const TABLES: [(&str, &str, &str); 5] = [
    ("workers", "Workers", "Rings: entries waiting or in use, the mean of the last second."),
    ("ports", "Ports", "Bit rates are of frame bytes."),
    ("causes", "Drops by cause", "Since the run began, and in the last second."),
    ("tables", "Flows and tables", "What applications count and hold, by their own names."),
    ("stages", "Stages", "What the ports' NICs count and hold on the packet path."),
];

/// The page of the run that `record` plans: its settings, and places for what is measured.
pub fn live_page(record: &Record) -> String {
    let title = escape(if record.title.is_empty() { &record.scenario } else { &record.title });
    let value = |key: &str| {
        let point = record.points.first()?;
        Some(escape(&plain(point.params.get(key)?)))
    };
    let app = value("app").unwrap_or_else(|| "TCP".to_owned());
    let [interface, cores] = ["interface", "cores"].map(|key| value(key).unwrap_or_default());
    let workers = if cores == "1" { "worker" } else { "workers" };
    let mut page = head(&title, "nicforge live");
    page += &format!(
        "<p class=\"asked\">{app} on {interface}, {cores} {workers}</p>\n</header>\n\
         <section class=\"findings\">\n<h2>Now</h2>\n<p id=\"answer\" aria-live=\"polite\"><b>Waiting for the run.</b></p>\n</section>\n\
         <section class=\"chain\">\n<h2>From wire to wire</h2>\n<p class=\"note\">The last second. A dashed mark is a limit.</p>\n\
         <ol id=\"chain\"></ol>\n</section>\n<div class=\"figures\">\n"
    );
    for (id, heading, note) in PLOTS {
        page += &format!(
            "<section class=\"narrow\" id=\"{id}\">\n<h2>{heading}</h2>\n<p class=\"note\">{note}</p>\n<ul class=\"legend\"></ul>\n\
             <figure></figure>\n</section>\n"
        );
    }
    page += "<section class=\"narrow\" id=\"events\">\n<h2>Events</h2>\n<p class=\"note\">Newest first.</p>\n<ol reversed></ol>\n</section>\n</div>\n";
    for (id, heading, note) in TABLES {
        page += &format!(
            "<section id=\"{id}\">\n<h2>{heading}</h2>\n<p class=\"note\">{note}</p>\n<div class=\"scroll\"><table></table></div>\n</section>\n"
        );
    }
    page += &tables::setting(record);
    page + &format!("</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
}
