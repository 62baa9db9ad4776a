//! Pages in a real browser: no error in its console, nothing clipped, nothing on top of anything else, whatever the
//! width, the colours or the paper.

use nicforge_record::Record;
use serde_json::{Value, json};

use super::chromium::{Browser, Look};
use super::diff::page::diff_page;
use super::{claims, comparison, fake, to_html};

/// Widths of a phone, a desk and a sheet of A4 within its margins.
const LOOKS: [Look; 4] = [
    Look { width: 1280, dark: false, paper: false },
    Look { width: 390, dark: false, paper: false },
    Look { width: 1280, dark: true, paper: false },
    Look { width: 718, dark: false, paper: true },
];

/// What is wrong with the layout, in words.
const MEASURE: &str = include_str!("browser.js");

/// Two swept keys by two variants: 16 points.
fn sixteen() -> Record {
    let mut record = fake::two_keys();
    record.points.retain(|point| point.params["cores"] != 4 && point.params["rx_entries"] != 4096);
    record.points.extend(fake::two_keys().points.into_iter().filter(|point| point.params["cores"] == 4).take(4));
    record
}

/// Every kind of page.
fn all() -> Vec<(&'static str, String)> {
    let (one, two) = (fake::two_variants(), fake::ties());
    let records = [
        ("1 point", fake::single()),
        ("2 points", fake::two_variants()),
        ("16 points", sixteen()),
        ("462 points", fake::wide()),
        ("a long sweep", fake::sweep(&[("priv_ring", 1.8), ("rx_bisect", 0.25)])),
        ("over time", fake::over_time()),
        ("crowded", fake::crowded(3)),
        ("more crowded", fake::crowded(14)),
        ("many variants", fake::many()),
        ("sim and live", comparison::tests::record()),
        ("no point", Record::default()),
    ];
    let mut pages: Vec<(&str, String)> =
        records.into_iter().map(|(name, record)| (name, to_html(&record).unwrap())).collect();
    pages.push(("two runs", diff_page(&one, &two, ["out/nat-200g/3fa9c1d2", "out/nat-200g/latest"]).unwrap()));
    pages.push(("two sweeps", diff_page(&fake::two_keys(), &fake::many(), ["out/a", "out/b"]).unwrap()));
    pages.push(("claims", claims::tests::page()));
    pages
}

#[test]
fn pages_have_no_error_and_nothing_clipped_or_overlapping() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (name, page) in all() {
        let file = folder.path().join("page.html");
        std::fs::write(&file, page).unwrap();
        browser.look(LOOKS[0]);
        browser.open(&format!("file://{}", file.display()));
        // As it is opened; then with all that is folded, in all looks.
        let mut looks = vec![(LOOKS[0], false)];
        looks.extend(LOOKS.map(|look| (look, true)));
        for (look, opened) in looks {
            browser.look(look);
            browser.value(&format!("document.querySelectorAll('details').forEach(it => it.open = {opened})"));
            let found = browser.value(MEASURE);
            let found = found.as_array().unwrap().iter().map(|found| found.as_str().unwrap().to_owned());
            wrong.extend(found.map(|found| format!("{name}, {look:?}: {found}")));
            if let Some(folder) =
                std::env::var_os("NICFORGE_PICTURES").filter(|_| !opened || look.width != 1280 || look.dark)
            {
                let name = format!("{} {}{}.png", name, look.width, if look.dark { " dark" } else { "" });
                browser.picture(&std::path::Path::new(&folder).join(name.replace(' ', "-")));
            }
        }
        wrong.extend(browser.errors().into_iter().map(|error| format!("{name}: {error}")));
        if name == "1 point" {
            let paper = folder.path().join("page.pdf");
            browser.print(&paper);
            assert!(std::fs::read(&paper).unwrap().starts_with(b"%PDF"), "{name}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Chooses, sorts and pivots the table of 462 points, and says what is left.
const USE: &str = r#"(() => {
  const table = document.querySelector(".points table");
  const seen = () => [...table.tBodies[0].rows].filter(row => !row.hidden);
  const choose = (label, value) => {
    const of = [...document.querySelectorAll("label")].find(it => it.firstChild.textContent === label).querySelector("select");
    of.value = [...of.options].find(option => option.textContent === value).value;
    of.dispatchEvent(new Event("change"));
  };
  const first = seen().length;
  const head = [...table.tHead.rows[0].cells].findIndex(cell => cell.title === "throughput_gbps");
  table.tHead.rows[0].cells[head].click();
  const most = Number(seen()[0].cells[head].dataset.v);
  table.tHead.rows[0].cells[head].click();
  const least = Number(seen()[0].cells[head].dataset.v);
  choose("variant", "host");
  choose("io_ways", "11");
  choose("rows", "array_mib");
  choose("columns", "rx_entries");
  choose("value", "dropped %");
  const maps = document.querySelectorAll(".heatmap");
  return { first, rising: least < most, left: seen().length, maps: maps.length, cells: maps[0].querySelectorAll("td").length,
    title: document.querySelector(".heat h2").textContent, hosts: seen().every(row => row.cells[0].textContent === "host") };
})()"#;

#[test]
fn many_points_are_chosen_sorted_and_pivoted() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, to_html(&fake::wide()).unwrap()).unwrap();
    browser.look(LOOKS[0]);
    browser.open(&format!("file://{}", file.display()));
    let expected = json!({
        "first": 25, "rising": true, "left": 21, "maps": 1, "cells": 21, "title": "Dropped by array_mib and rx_entries", "hosts": true,
    });
    assert_eq!(browser.value(USE), expected);
    for look in LOOKS {
        browser.look(look);
        assert_eq!(browser.value(MEASURE), json!([]), "{look:?}");
    }
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn the_measure_finds_what_is_clipped_and_what_overlaps() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(LOOKS[0]);
    let mut said = |body: &str| -> Vec<Value> {
        browser.value(&format!("document.body.innerHTML = {}", json!(body)));
        browser.value(MEASURE).as_array().unwrap().clone()
    };
    assert_eq!(said("<p>all is well</p>"), Vec::<Value>::new());
    assert_eq!(said("<p style='width:4000px'>wide</p>").len(), 1);
    let over = "<p>one</p><p style='margin-top:-30px'>another</p>";
    assert!(said(over)[0].as_str().unwrap().contains("overlap"));
    let clipped = "<p style='width:30px;overflow:hidden;white-space:nowrap'>a long line of words</p>";
    assert!(said(clipped)[0].as_str().unwrap().contains("clipped"));
    browser.value("console.error('no')");
    assert_eq!(browser.errors().len(), 1);
}
