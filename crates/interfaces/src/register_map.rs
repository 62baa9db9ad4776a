//! Register maps: what a device that is driven by registers has, as a table from which both the
//! device and `nicforge list registers` are made.

use std::fmt::Write;

/// Bits of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the data sheet.
    pub tag: &'static str,
    /// Its highest bit.
    pub high: u32,
    /// Its lowest bit.
    pub low: u32,
    /// What it is for.
    pub about: &'static str,
}

impl Field {
    /// Its bits, in place.
    pub const fn mask(&self) -> u64 {
        (u64::MAX >> (63 - (self.high - self.low))) << self.low
    }

    /// The largest value that fits.
    pub const fn max(&self) -> u64 {
        self.mask() >> self.low
    }

    /// Its value in `word`.
    #[inline]
    pub const fn get(&self, word: u64) -> u64 {
        (word & self.mask()) >> self.low
    }

    /// Whether any of its bits is set in `word`.
    #[inline]
    pub const fn is_set(&self, word: u64) -> bool {
        word & self.mask() != 0
    }

    /// `value` in its place; bits that do not fit are left out.
    #[inline]
    pub const fn of(&self, value: u64) -> u64 {
        (value << self.low) & self.mask()
    }
}

/// How wide a register is; it takes accesses of this width only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits.
    Bits32 = 4,
    /// 64 bits.
    Bits64 = 8,
}

impl Width {
    /// In bytes.
    pub const fn bytes(self) -> u32 {
        self as u32
    }

    /// All bits of a register.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }
}

/// What software may do to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and write.
    ReadWrite,
    /// Read; writes are refused.
    ReadOnly,
    /// Write; reads are refused.
    WriteOnly,
    /// A read clears all bits, a write those that are 1.
    ReadClears,
}

impl Access {
    fn text(self) -> &'static str {
        match self {
            Access::ReadWrite => "RW",
            Access::ReadOnly => "RO",
            Access::WriteOnly => "WO",
            Access::ReadClears => "R/W1C",
        }
    }
}

/// What a register holds after a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// This.
    Value(u64),
    /// What the device was configured with.
    Configured,
    /// Nothing: it cannot be read.
    Nothing,
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRow {
    /// Its name in the data sheet.
    pub tag: &'static str,
    /// Its place in the register set, in bytes.
    pub offset: u32,
    /// How wide it is.
    pub width: Width,
    /// Whether each virtual NIC has its own.
    pub per_virtual: bool,
    /// What software may do.
    pub access: Access,
    /// After a reset.
    pub reset: Reset,
    /// Where the data sheet describes it.
    pub section: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Its fields; a register without fields is one number.
    pub fields: &'static [Field],
}

impl RegisterRow {
    /// The bits that no field names.
    pub const fn reserved(&self) -> u64 {
        let mut named = 0;
        let mut index = 0;
        while index < self.fields.len() {
            named |= self.fields[index].mask();
            index += 1;
        }
        if self.fields.is_empty() { 0 } else { self.width.mask() & !named }
    }

    fn reset_text(&self) -> String {
        match self.reset {
            Reset::Value(value) => format!("{value:0width$X}h", width = 2 * self.width as usize),
            Reset::Configured => "configured".to_string(),
            Reset::Nothing => "-".to_string(),
        }
    }
}

/// All registers of a device.
#[derive(Clone, Copy, Debug)]
pub struct RegisterMap {
    /// The device.
    pub name: &'static str,
    /// What it is, and where its data sheet is.
    pub about: &'static str,
    /// Its registers, by offset.
    pub rows: &'static [RegisterRow],
    /// Bytes from one virtual NIC's register set to the next, where there are several.
    pub stride: Option<u32>,
}

/// The register maps of all devices that have one.
pub const REGISTER_MAPS: &[RegisterMap] = &[crate::sinic::registers::MAP, crate::v_sinic::MAP];

impl RegisterMap {
    /// The map of device `name`.
    pub fn find(name: &str) -> Option<&'static RegisterMap> {
        REGISTER_MAPS.iter().find(|map| map.name == name)
    }

    fn offset_text(&self, row: &RegisterRow) -> String {
        match self.stride {
            Some(stride) if row.per_virtual => format!("{stride:X}h * n + {:02X}h", row.offset),
            _ => format!("{:02X}h", row.offset),
        }
    }

    /// Head of the table, and a row per register, each followed by rows for its fields: offset
    /// or bits, tag, width, virtual, access, reset, what it is.
    fn table(&self) -> Vec<[String; 7]> {
        let head = ["offset", "tag", "width", "virtual", "access", "reset", "what"];
        let mut table = vec![head.map(str::to_string)];
        for row in self.rows {
            table.push([
                self.offset_text(row),
                row.tag.to_string(),
                format!("{}b", 8 * row.width.bytes()),
                (if row.per_virtual { "yes" } else { "no" }).to_string(),
                row.access.text().to_string(),
                row.reset_text(),
                format!("{} ({})", row.about, row.section),
            ]);
            for field in row.fields {
                let bits = if field.high == field.low {
                    format!("bit {}", field.low)
                } else {
                    format!("bits {}-{}", field.high, field.low)
                };
                let empty = String::new;
                table.push([
                    bits,
                    format!("{}.{}", row.tag, field.tag),
                    empty(),
                    empty(),
                    empty(),
                    empty(),
                    field.about.to_string(),
                ]);
            }
        }
        table
    }

    /// The map as aligned columns.
    pub fn text(&self) -> String {
        let table = self.table();
        let widths: Vec<usize> =
            (0..6).map(|column| table.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
        let mut text = format!("{}: {}\n", self.name, self.about);
        for row in &table {
            for (cell, &width) in row.iter().zip(&widths) {
                // Writing to a string cannot fail.
                let _ = write!(text, "{cell:width$}  ");
            }
            text.push_str(&row[6]);
            text.push('\n');
        }
        text
    }

    /// The map as a chapter of a Markdown page.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.name, self.about);
        for (number, row) in self.table().iter().enumerate() {
            let cells: Vec<&str> = row.iter().map(|cell| cell.trim()).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
            if number == 0 {
                text.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
            }
        }
        text
    }
}
