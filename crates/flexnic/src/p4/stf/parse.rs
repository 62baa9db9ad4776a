//! Commands of an STF file.

/// A key as the file has it: name and text with `*` for digits that do not matter.
pub type KeyText = (String, String);

/// An action with its arguments by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionText {
    /// Name of the action.
    pub name: String,
    /// Arguments: name, value.
    pub arguments: Vec<(String, String)>,
}

/// A command.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each is the command of its name")]
pub enum Command {
    Add {
        table: String,
        priority: Option<i64>,
        keys: Vec<KeyText>,
        action: ActionText,
    },
    SetDefault {
        table: String,
        action: ActionText,
    },
    Remove {
        table: String,
        keys: Vec<KeyText>,
    },
    Packet {
        port: u32,
        bytes: Vec<u8>,
    },
    /// Digits of the packet, `*` for one that does not matter; `exact` where it ends in `$`.
    Expect {
        port: u32,
        digits: Option<String>,
        exact: bool,
    },
    /// No packet leaves on this port from here on.
    NoPacket {
        port: Option<u32>,
    },
    CheckCounter {
        name: String,
        index: Option<u64>,
        bytes: bool,
        comparison: String,
        value: u64,
    },
    MirroringAdd {
        session: u64,
        port: u64,
    },
    MirroringAddGroup {
        session: u64,
        group: u64,
    },
    MirroringDelete {
        session: u64,
    },
    MirroringGet {
        session: u64,
    },
    GroupCreate {
        group: u64,
    },
    NodeCreate {
        rid: u64,
        ports: Vec<u64>,
    },
    NodeAssociate {
        group: u64,
        node: usize,
    },
    RegisterRead {
        name: String,
        index: Option<u64>,
    },
    RegisterWrite {
        name: String,
        index: u64,
        value: u64,
    },
    RegisterReset {
        name: String,
    },
    MeterRates {
        name: String,
        index: Option<u64>,
        rates: Vec<(f64, f64)>,
    },
    MeterGet {
        name: String,
        index: u64,
    },
    /// A member of a value set.
    ValueSetAdd {
        name: String,
        values: Vec<String>,
    },
    Wait,
}

/// A line that is no command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct StfError {
    /// Line from 1.
    pub line: usize,
    /// The mistake.
    pub why: String,
}

/// Largest file.
const LINES_MAX: usize = 1_000_000;

/// Parses a file into commands with their lines.
pub fn parse(text: &str) -> Result<Vec<(usize, Command)>, StfError> {
    let mut commands = Vec::new();
    for (number, line) in text.lines().enumerate().take(LINES_MAX) {
        let line_number = number + 1;
        let fail = |why: String| StfError { line: line_number, why };
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        commands.push((line_number, command(word, rest.trim()).map_err(fail)?));
    }
    Ok(commands)
}

fn command(word: &str, rest: &str) -> Result<Command, String> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| -> Result<u64, String> {
        let text = words.get(at).ok_or_else(|| format!("`{word}` needs more numbers"))?;
        integer(text).ok_or_else(|| format!("`{text}` is not a number"))
    };
    let name = |at: usize| words.get(at).map(|word| (*word).to_owned()).ok_or_else(|| format!("`{word}` needs a name"));
    Ok(match word {
        "wait" => Command::Wait,
        "add" => add(rest)?,
        "setdefault" => {
            let (table, action) =
                rest.split_once(char::is_whitespace).ok_or("`setdefault` needs a table and an action")?;
            Command::SetDefault { table: table.to_owned(), action: action_text(action)? }
        }
        "remove" => remove(&words)?,
        "packet" => packet(rest)?,
        "expect" => expect(rest)?,
        "no_packet" => Command::NoPacket { port: words.first().and_then(|word| word.parse().ok()) },
        "check_counter" => check_counter(rest)?,
        "mirroring_add" => Command::MirroringAdd { session: number(0)?, port: number(1)? },
        "mirroring_add_mc" => Command::MirroringAddGroup { session: number(0)?, group: number(1)? },
        "mirroring_delete" => Command::MirroringDelete { session: number(0)? },
        "mirroring_get" => Command::MirroringGet { session: number(0)? },
        "mc_mgrp_create" => Command::GroupCreate { group: number(0)? },
        "mc_node_create" => {
            let ports: Result<Vec<u64>, String> = (1..words.len()).map(number).collect();
            Command::NodeCreate { rid: number(0)?, ports: ports? }
        }
        "mc_node_associate" => Command::NodeAssociate { group: number(0)?, node: number(1)? as usize },
        "register_read" => Command::RegisterRead { name: name(0)?, index: words.get(1).and_then(|word| integer(word)) },
        "register_write" => Command::RegisterWrite { name: name(0)?, index: number(1)?, value: number(2)? },
        "register_reset" => Command::RegisterReset { name: name(0)? },
        "meter_get_rates" => Command::MeterGet { name: name(0)?, index: number(1)? },
        "meter_set_rates" => {
            Command::MeterRates { name: name(0)?, index: Some(number(1)?), rates: rates(&words[2..])? }
        }
        "meter_array_set_rates" => Command::MeterRates { name: name(0)?, index: None, rates: rates(&words[1..])? },
        "value_set_add" => {
            Command::ValueSetAdd { name: name(0)?, values: words[1..].iter().map(|word| (*word).to_owned()).collect() }
        }
        other => return Err(format!("there is no command `{other}`")),
    })
}

fn rates(words: &[&str]) -> Result<Vec<(f64, f64)>, String> {
    let rate = |word: &&str| {
        let (rate, burst) = word.split_once(':')?;
        Some((rate.parse().ok()?, burst.parse().ok()?))
    };
    words.iter().map(|word| rate(word).ok_or_else(|| format!("`{word}` is not RATE:BURST"))).collect()
}

/// A number in any base.
pub(super) fn integer(text: &str) -> Option<u64> {
    let number = crate::p4::lexer::parse_number(&text.replace('_', "")).ok()?;
    u64::try_from(&number.value).ok()
}

/// `table [priority] key:value ... action(arguments)`
fn add(rest: &str) -> Result<Command, String> {
    let open = rest.find('(').ok_or("the action of an entry needs brackets")?;
    let before = rest[..open].trim_end();
    let at = before.rfind(char::is_whitespace).ok_or("an entry needs a table and an action")?;
    let action = action_text(&rest[at..])?;
    let mut words = before[..at].split_whitespace().peekable();
    let table = words.next().ok_or("an entry needs a table")?.to_owned();
    let mut priority = None;
    if let Some(word) = words.peek()
        && !word.contains(':')
    {
        priority = Some(word.parse().map_err(|_| format!("`{word}` is no priority"))?);
        words.next();
    }
    let keys: Result<Vec<KeyText>, String> = words.map(key_text).collect();
    Ok(Command::Add { table, priority, keys: keys?, action })
}

fn remove(words: &[&str]) -> Result<Command, String> {
    let table = (*words.first().ok_or("`remove` needs a table")?).to_owned();
    let keys: Result<Vec<KeyText>, String> = words[1..].iter().map(|word| key_text(word)).collect();
    Ok(Command::Remove { table, keys: keys? })
}

fn key_text(word: &str) -> Result<KeyText, String> {
    let (name, value) = word.split_once(':').ok_or_else(|| format!("`{word}` is not NAME:VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn action_text(text: &str) -> Result<ActionText, String> {
    let text = text.trim();
    let Some((name, arguments)) = text.split_once('(') else {
        return Ok(ActionText { name: text.to_owned(), arguments: Vec::new() });
    };
    let arguments = arguments.trim_end().strip_suffix(')').ok_or("a `)` is missing")?;
    let parts = arguments.split([',', ' ']).map(str::trim).filter(|part| !part.is_empty());
    let arguments: Result<Vec<_>, String> = parts.map(key_text).collect();
    Ok(ActionText { name: name.trim().to_owned(), arguments: arguments? })
}

fn packet(rest: &str) -> Result<Command, String> {
    let (port, digits) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let port = port.parse().map_err(|_| format!("`{port}` is no port"))?;
    let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace()).collect();
    if !digits.len().is_multiple_of(2) {
        return Err("a packet needs an even number of digits".to_owned());
    }
    let byte = |pair: &[char]| {
        let text: String = pair.iter().collect();
        u8::from_str_radix(&text, 16).map_err(|_| format!("`{text}` is no byte"))
    };
    let bytes: Result<Vec<u8>, String> = digits.chunks(2).map(byte).collect();
    Ok(Command::Packet { port, bytes: bytes? })
}

fn expect(rest: &str) -> Result<Command, String> {
    let (port, digits) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let port = port.parse().map_err(|_| format!("`{port}` is no port"))?;
    let mut digits: String = digits.chars().filter(|c| !c.is_whitespace()).collect();
    let exact = digits.ends_with('$');
    if exact {
        digits.pop();
    }
    if let Some(bad) = digits.chars().find(|c| !c.is_ascii_hexdigit() && *c != '*') {
        return Err(format!("`{bad}` is no digit of a packet"));
    }
    Ok(Command::Expect { port, digits: (!digits.is_empty()).then(|| digits.to_uppercase()), exact })
}

/// `name(index) [packets|bytes] == value`
fn check_counter(rest: &str) -> Result<Command, String> {
    let (name, index, after) = match rest.split_once('(') {
        Some((name, after)) => {
            let (index, after) = after.split_once(')').ok_or("a `)` is missing")?;
            (name, index, after)
        }
        None => {
            let (name, after) = rest.split_once(char::is_whitespace).ok_or("`check_counter` needs a comparison")?;
            (name, "", after)
        }
    };
    let mut words: Vec<&str> = after.split_whitespace().collect();
    let bytes = words.first() == Some(&"bytes");
    if bytes || words.first() == Some(&"packets") {
        words.remove(0);
    }
    let comparison = (*words.first().unwrap_or(&"==")).to_owned();
    let value = words.get(1).and_then(|word| integer(word)).ok_or("`check_counter` needs a number")?;
    Ok(Command::CheckCounter { name: name.trim().to_owned(), index: integer(index.trim()), bytes, comparison, value })
}
