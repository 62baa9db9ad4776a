//! Metrics for Prometheus and all that read OpenMetrics, on a loopback address.

use std::net::SocketAddr;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use crate::error::CliError;
use crate::http;

/// What a client accepts that wants OpenMetrics 1.0; others get Prometheus's older text format.
const OPEN_METRICS: &str = "application/openmetrics-text";

/// No value has an example beside it.
const NO_EXEMPLAR: Option<&Exemplar<Vec<(&str, &str)>, f64>> = None;

/// Whether values only rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They do, from zero on; the name gets the suffix `_total`.
    Counter,
    /// They do not.
    Gauge,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Whole(u64),
    /// A quantity.
    Real(f64),
}

impl From<u64> for Value {
    fn from(count: u64) -> Value {
        Value::Whole(count)
    }
}

impl From<f64> for Value {
    fn from(quantity: f64) -> Value {
        Value::Real(quantity)
    }
}

/// One value of a metric, and the labels that tell it from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Names and values of labels.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

impl Row {
    /// The only value of a metric.
    pub fn only(value: impl Into<Value>) -> Row {
        Row { labels: Vec::new(), value: value.into() }
    }

    /// A value with one label.
    pub fn of(label: &'static str, is: impl ToString, value: impl Into<Value>) -> Row {
        Row::only(value).and(label, is)
    }

    /// The same with one more label.
    pub fn and(mut self, label: &'static str, is: impl ToString) -> Row {
        self.labels.push((label, is.to_string()));
        self
    }
}

/// A metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Without the prefix `nicforge_` and the suffix of counters.
    pub name: &'static str,
    /// What kind it is.
    pub kind: Kind,
    /// What it is.
    pub help: &'static str,
    /// Its values.
    pub rows: Vec<Row>,
}

impl Metric {
    /// A counter.
    pub fn counter(name: &'static str, help: &'static str, rows: impl IntoIterator<Item = Row>) -> Metric {
        Metric { name, kind: Kind::Counter, help, rows: rows.into_iter().collect() }
    }

    /// A gauge.
    pub fn gauge(name: &'static str, help: &'static str, rows: impl IntoIterator<Item = Row>) -> Metric {
        Metric { name, kind: Kind::Gauge, help, rows: rows.into_iter().collect() }
    }

    fn encode(&self, encoder: &mut DescriptorEncoder) -> std::fmt::Result {
        let kind = match self.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
        };
        let mut family = encoder.encode_descriptor(self.name, self.help, None, kind)?;
        for Row { labels, value } in &self.rows {
            let mut one = family.encode_family(labels)?;
            match (self.kind, value) {
                (Kind::Counter, Value::Whole(count)) => one.encode_counter(count, NO_EXEMPLAR)?,
                (Kind::Counter, Value::Real(sum)) => one.encode_counter(sum, NO_EXEMPLAR)?,
                (Kind::Gauge, Value::Whole(count)) => one.encode_gauge(count)?,
                (Kind::Gauge, Value::Real(quantity)) => one.encode_gauge(quantity)?,
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Page(Vec<Metric>);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder) -> std::fmt::Result {
        self.0.iter().try_for_each(|metric| metric.encode(&mut encoder))
    }
}

/// Serves what `metrics` says, asked anew for each client, on `address`.
pub fn serve(address: SocketAddr, metrics: impl Fn() -> Vec<Metric> + Send + Sync + 'static) -> Result<(), CliError> {
    if !address.ip().is_loopback() {
        let right = "name a loopback address, such as 127.0.0.1:9477";
        return Err(CliError::Usage(format!("--metrics {address}: would be seen by other machines; {right}")));
    }
    http::serve(address, "--metrics", move |request, client| match (request.method, request.path) {
        ("GET" | "HEAD", "/metrics" | "/") => {
            let open = request.accept.contains(OPEN_METRICS);
            let kind = match open {
                true => "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n",
                false => "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
            };
            let text = if request.method == "GET" { page(metrics(), open) } else { String::new() };
            http::reply(client, "200 OK", kind, &text)
        }
        ("GET" | "HEAD", _) => http::reply(client, "404 Not Found", "", "there is only /metrics\n"),
        _ => http::reply(client, "405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET /metrics\n"),
    })
}

/// The page, as OpenMetrics if it is to be `open`.
fn page(mut metrics: Vec<Metric>, open: bool) -> String {
    let build =
        Row::of("version", env!("CARGO_PKG_VERSION"), 1).and("commit", option_env!("NICFORGE_COMMIT").unwrap_or(""));
    metrics.push(Metric::gauge("build_info", "The program that says this.", [build]));
    let mut registry = Registry::with_prefix("nicforge");
    registry.register_collector(Box::new(Page(metrics)));
    let mut page = String::new();
    let encoded = if open { text::encode(&mut page, &registry) } else { prometheus_text::encode(&mut page, &registry) };
    // Writing to a string cannot fail.
    encoded.expect("a string takes all text");
    page
}
