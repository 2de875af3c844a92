//! What a terminal shows of a script's output, as lines: of a line that is redrawn many times, such as a bar, the last
//! state, and no colours.
//!
//! A line is passed on when it ends, unless the script has moved up into the lines above it: then so many lines wait, because
//! they are about to be redrawn. What waits is passed on every ten seconds, too: a log that does not grow says that nothing
//! happens, and a shim that is killed has passed on all but the last seconds.

use std::collections::VecDeque;

/// How long a state of a line waits for the next one before it is passed on.
const HOLD_MICROS: i64 = 10_000_000;
/// No terminal has more lines, so that nothing above them is redrawn.
const ROWS_MAX: usize = 200;
/// The cursor gets no further to the right by itself.
const COLUMNS_MAX: usize = 4096;
/// A line that is longer is passed on before its end.
const CELLS_MAX: usize = 64 << 10;
/// No letter of UTF-8 has more bytes.
const LETTER_BYTES: usize = 4;
const ESCAPE: u8 = 0x1b;
const BACKSPACE: u8 = 8;
const BELL: u8 = 7;

/// One letter; bytes that are no UTF-8 are a letter each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    bytes: [u8; LETTER_BYTES],
    length: u8,
}

impl Cell {
    const BLANK: Self = Self::of(b' ');

    const fn of(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], length: 1 }
    }

    /// Adds a byte that continues a letter, unless this one is whole.
    fn continued(&mut self, byte: u8) -> bool {
        let bytes = match self.bytes[0] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        let at = usize::from(self.length);
        let is_part = at < bytes;
        if is_part {
            self.bytes[at] = byte;
            self.length += 1;
        }
        is_part
    }

    fn text(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A line that may be redrawn.
#[derive(Debug, Default)]
struct Row {
    cells: Vec<Cell>,
    /// So many of them were passed on.
    passed: usize,
    /// What was passed on is not what it shows now.
    is_redrawn: bool,
    /// It was passed on as a whole line, and nothing was drawn there since.
    is_old: bool,
}

impl Row {
    fn has_news(&self) -> bool {
        !self.is_old && (self.is_redrawn || self.passed < self.cells.len())
    }

    /// Notes that the letters from here on change.
    fn changes_at(&mut self, column: usize) {
        self.is_redrawn |= column < self.passed;
    }

    fn erase(&mut self, from: usize, to: usize) {
        let to = to.min(self.cells.len());
        if from >= to {
            return;
        }
        self.changes_at(from);
        match to == self.cells.len() {
            true => self.cells.truncate(from),
            false => self.cells[from..to].fill(Cell::BLANK),
        }
    }
}

/// Where in an escape sequence the output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    Outside,
    Begun,
    /// Its numbers so far.
    Control {
        numbers: [usize; 2],
        at: usize,
    },
    /// A text, such as the title of the window.
    Text,
    /// A text that may end here.
    TextEnds,
}

/// The last lines that a script printed in a terminal, and its cursor.
#[derive(Debug)]
pub(super) struct Redrawn {
    /// Those that wait; never empty.
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    /// So many lines above the last one wait.
    depth: usize,
    /// Whether the script moved up since what waited was passed on.
    moved_up: bool,
    /// The last line that was passed on has not ended.
    is_open: bool,
    escape: Escape,
    /// Since when something waits.
    since: Option<i64>,
    /// Whether the cursor went back since a letter was drawn over.
    has_moved: bool,
    /// How many states of lines were drawn over before they were passed on.
    drawn_over: u64,
}

impl Redrawn {
    pub fn new() -> Self {
        Self {
            rows: VecDeque::from([Row::default()]),
            row: 0,
            column: 0,
            depth: 0,
            moved_up: false,
            is_open: false,
            escape: Escape::Outside,
            since: None,
            has_moved: false,
            drawn_over: 0,
        }
    }

    /// Takes what the script printed; appends what may be stored. Times are of the monotonic clock, in microseconds.
    pub fn push(&mut self, mut bytes: &[u8], now: i64, lines: &mut Vec<u8>) {
        while !bytes.is_empty() {
            if self.is_plain() {
                let special = memchr::memchr3(b'\r', ESCAPE, BACKSPACE, bytes).unwrap_or(bytes.len());
                if let Some(end) = memchr::memrchr(b'\n', &bytes[..special]) {
                    lines.extend_from_slice(&bytes[..=end]);
                    bytes = &bytes[end + 1..];
                    continue;
                }
            }
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |newline| newline + 1);
            let (line, rest) = bytes.split_at(end);
            line.iter().for_each(|byte| self.take(*byte, lines));
            bytes = rest;
        }
        self.since = self.waits().then(|| self.since.unwrap_or(now));
    }

    /// When [`Self::tick`] must be called.
    pub fn wake_at(&self) -> Option<i64> {
        self.since.map(|since| since + HOLD_MICROS)
    }

    /// Passes on what waited long enough.
    pub fn tick(&mut self, now: i64, lines: &mut Vec<u8>) {
        if self.wake_at().is_none_or(|at| now < at) {
            return;
        }
        match self.rows.len() {
            1 if self.rows[0].has_news() => self.pass_on(0, lines),
            1 => {}
            _ => self.pass_on_all(lines),
        }
        if !std::mem::replace(&mut self.moved_up, false) {
            self.depth = 0;
        }
        self.since = self.waits().then_some(now);
    }

    /// Passes on everything that is left.
    pub fn finish(&mut self, lines: &mut Vec<u8>) {
        while self.rows.len() > 1 {
            self.end_first(lines);
        }
        if self.rows[0].has_news() {
            self.pass_on(0, lines);
        }
        self.since = None;
    }

    /// How many states of lines are not in what was passed on.
    pub fn drawn_over(&self) -> u64 {
        self.drawn_over
    }

    /// Letters of the line of the cursor are about to change: what it shows is lost, unless it was passed on.
    fn draw_over(&mut self) {
        self.has_moved = false;
        self.drawn_over += u64::from(self.rows[self.row].has_news());
    }

    /// Whether nothing waits, so that whole lines need no look.
    fn is_plain(&self) -> bool {
        let row = &self.rows[0];
        let is_empty = self.rows.len() == 1 && row.cells.is_empty() && !row.is_redrawn;
        is_empty && self.column == 0 && self.depth == 0 && !self.is_open && self.escape == Escape::Outside
    }

    fn waits(&self) -> bool {
        let last = self.rows.len() - 1;
        self.rows.iter().take(last).any(|row| !row.is_old) || self.rows[last].has_news()
    }

    /// Passes on the state of a line.
    fn pass_on(&mut self, row: usize, lines: &mut Vec<u8>) {
        if self.is_open && self.rows[row].passed == 0 {
            // Another line was the last one.
            lines.push(b'\n');
            self.rows.iter_mut().for_each(|row| (row.passed, row.is_redrawn) = (0, false));
        }
        let row = &mut self.rows[row];
        if std::mem::replace(&mut row.is_redrawn, false) {
            lines.push(b'\r');
            row.passed = 0;
        }
        row.cells[row.passed..].iter().for_each(|cell| lines.extend_from_slice(cell.text()));
        row.passed = row.cells.len();
        self.is_open = true;
    }

    /// Passes on a line as a whole one.
    fn end(&mut self, row: usize, lines: &mut Vec<u8>) {
        self.pass_on(row, lines);
        lines.push(b'\n');
        self.is_open = false;
        let row = &mut self.rows[row];
        (row.passed, row.is_old) = (0, true);
    }

    /// Passes on the state of all lines, which may be redrawn.
    fn pass_on_all(&mut self, lines: &mut Vec<u8>) {
        for row in 0..self.rows.len() {
            let is_last = row + 1 == self.rows.len();
            if self.rows[row].has_news() || !(is_last || self.rows[row].is_old) {
                self.end(row, lines);
            }
        }
    }

    /// Passes on the first line, which is redrawn no more.
    fn end_first(&mut self, lines: &mut Vec<u8>) {
        if !self.rows[0].is_old {
            self.end(0, lines);
        }
        self.rows.pop_front();
        self.row = self.row.saturating_sub(1);
    }

    fn take(&mut self, byte: u8, lines: &mut Vec<u8>) {
        self.escape = match (self.escape, byte) {
            (Escape::Outside, ESCAPE) => Escape::Begun,
            (Escape::Outside, _) => {
                self.take_text(byte, lines);
                return;
            }
            (Escape::Text, BELL) | (Escape::TextEnds, b'\\') => Escape::Outside,
            (Escape::Text, ESCAPE) => Escape::TextEnds,
            // No sequence has a line end in it: what began as one ends here.
            (_, b'\n' | b'\r') => {
                self.escape = Escape::Outside;
                self.take_text(byte, lines);
                return;
            }
            (Escape::Text | Escape::TextEnds, _) => Escape::Text,
            (_, ESCAPE) => Escape::Begun,
            (Escape::Begun, b'[') => Escape::Control { numbers: [0; 2], at: 0 },
            (Escape::Begun, b']' | b'P' | b'X' | b'^' | b'_') => Escape::Text,
            (Escape::Begun, b' '..=b'/') => Escape::Begun,
            (Escape::Begun, b'M') => {
                self.up(1);
                self.has_moved = true;
                Escape::Outside
            }
            (Escape::Begun, _) => Escape::Outside,
            (Escape::Control { numbers, at }, _) => self.control(numbers, at, byte, lines),
        };
    }

    fn control(&mut self, mut numbers: [usize; 2], at: usize, byte: u8, lines: &mut Vec<u8>) -> Escape {
        match byte {
            b'0'..=b'9' => {
                if let Some(number) = numbers.get_mut(at) {
                    *number = (*number * 10 + usize::from(byte - b'0')).min(COLUMNS_MAX);
                }
                Escape::Control { numbers, at }
            }
            b';' => Escape::Control { numbers, at: at + 1 },
            0x20..=0x3f => Escape::Control { numbers, at },
            _ => {
                self.obey(byte, numbers, lines);
                Escape::Outside
            }
        }
    }

    /// Does what moves the cursor or erases; all else is about looks.
    fn obey(&mut self, letter: u8, [first, second]: [usize; 2], lines: &mut Vec<u8>) {
        let count = first.max(1);
        self.has_moved |= matches!(letter, b'A' | b'D' | b'E' | b'F' | b'G');
        match letter {
            b'A' => self.up(count),
            b'B' => self.down(count),
            b'E' => {
                self.down(count);
                self.column = 0;
            }
            b'F' => {
                self.up(count);
                self.column = 0;
            }
            b'C' => self.column = (self.column + count).min(COLUMNS_MAX.max(self.column)),
            b'D' => self.column = self.column.saturating_sub(count),
            b'G' => self.column = count - 1,
            b'K' => self.erase_in_row(first),
            b'J' if first == 0 => {
                self.erase_in_row(0);
                let below = self.rows.iter().skip(self.row + 1);
                self.drawn_over += below.filter(|row| row.has_news()).count() as u64;
                self.rows.truncate(self.row + 1);
            }
            // A screen that is drawn from the beginning: what was on it stays in the log.
            b'J' | b'H' | b'f' => self.begin_screen(second.saturating_sub(1), lines),
            _ => {}
        }
    }

    fn erase_in_row(&mut self, what: usize) {
        let (from, to) = match what {
            0 => (self.column, usize::MAX),
            1 => (0, self.column + 1),
            _ => (0, usize::MAX),
        };
        let erases = from < self.rows[self.row].cells.len();
        // The rest of a line that was redrawn already was counted with it.
        if erases && (self.has_moved || what > 0) {
            self.draw_over();
        }
        self.rows[self.row].erase(from, to);
    }

    fn begin_screen(&mut self, column: usize, lines: &mut Vec<u8>) {
        while self.rows.len() > 1 {
            self.end_first(lines);
        }
        if self.rows[0].has_news() || self.is_open {
            self.rows.push_back(Row::default());
            self.end_first(lines);
        }
        (self.row, self.column) = (0, column);
    }

    fn up(&mut self, count: usize) {
        let missing = count.saturating_sub(self.row).min(ROWS_MAX.saturating_sub(self.rows.len()));
        for _ in 0..missing {
            self.rows.push_front(Row { is_old: true, ..Row::default() });
        }
        self.row = (self.row + missing).saturating_sub(count);
        self.depth = self.depth.max(self.rows.len() - 1 - self.row);
        self.moved_up = true;
    }

    fn down(&mut self, count: usize) {
        self.row = (self.row + count).min(self.rows.len() - 1);
    }

    fn take_text(&mut self, byte: u8, lines: &mut Vec<u8>) {
        match byte {
            b'\n' => self.end_row(lines),
            b'\r' => (self.column, self.has_moved) = (0, true),
            BACKSPACE => (self.column, self.has_moved) = (self.column.saturating_sub(1), true),
            0x80..=0xbf if self.continue_letter(byte) => {}
            _ => self.put(byte, lines),
        }
    }

    fn end_row(&mut self, lines: &mut Vec<u8>) {
        self.column = 0;
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push_back(Row::default());
            while self.rows.len() > self.depth + 1 {
                self.end_first(lines);
            }
        }
    }

    fn continue_letter(&mut self, byte: u8) -> bool {
        let row = &mut self.rows[self.row];
        let Some(last) = self.column.checked_sub(1) else { return false };
        row.cells.get_mut(last).is_some_and(|cell| cell.continued(byte))
    }

    fn put(&mut self, byte: u8, lines: &mut Vec<u8>) {
        if self.rows[self.row].cells.len() >= CELLS_MAX {
            self.pass_on_long(lines);
        }
        let cell = Cell::of(byte);
        let is_other = self.rows[self.row].cells.get(self.column).is_some_and(|old| *old != cell);
        if is_other && self.has_moved {
            self.draw_over();
        }
        let row = &mut self.rows[self.row];
        row.is_old = false;
        if let Some(old) = row.cells.get(self.column).copied() {
            if old != cell {
                row.changes_at(self.column);
                row.cells[self.column] = cell;
            }
        } else {
            row.cells.resize(self.column, Cell::BLANK);
            row.cells.push(cell);
        }
        self.column += 1;
    }

    /// Passes on a line that does not end; the rest of it follows as if it began there.
    fn pass_on_long(&mut self, lines: &mut Vec<u8>) {
        while self.row > 0 {
            self.end_first(lines);
        }
        self.pass_on(0, lines);
        let row = &mut self.rows[0];
        (row.cells, row.passed, self.column) = (Vec::new(), 0, 0);
        self.is_open = false;
    }
}

#[cfg(test)]
mod tests;
