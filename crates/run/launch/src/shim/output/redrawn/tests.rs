use super::*;

/// What is stored of an output that is cut into pieces of this size, at one time.
fn stored(output: &[u8], size: usize) -> String {
    let (mut redrawn, mut lines) = (Redrawn::new(), Vec::new());
    output.chunks(size).for_each(|piece| redrawn.push(piece, 0, &mut lines));
    redrawn.finish(&mut lines);
    String::from_utf8_lossy(&lines).into_owned()
}

/// Proves what is stored of each kind of output, however it is cut: plain lines as they are, of bars the last state, of lines that are
/// redrawn from above the last state and once their first one, no colours, titles or links; and what a screen that is
/// drawn from the beginning had before stays.
#[test]
fn the_last_state_of_a_line_is_stored() {
    for (output, expected) in [
        ("one\ntwo\n\nlast", "one\ntwo\n\nlast"),
        ("with\r\nreturns\r\n", "with\nreturns\n"),
        ("0%\r 50%\r100%\ndone\n", "100%\ndone\n"),
        ("\r0% |    |\r50% |##  |\r100% |####|\n", "100% |####|\n"),
        ("long line\rshort\n", "shortline\n"),
        ("long line\r\x1b[Kshort\n", "short\n"),
        ("abc\x08\x08X\n", "aXc\n"),
        ("\x1b[31mred\x1b[0m and \x1b[38:5:1mplain\x1b[m\n", "red and plain\n"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "alink\n"),
        ("\x1b]0;never ends\nnext\n", "\nnext\n"),
        (
            "\x1b[?25lloss \u{2588}\u{2591} 0.5\r\x1b[?25hloss \u{2588}\u{2588} 0.4\n",
            "loss \u{2588}\u{2588} 0.4\n",
        ),
        // As Rich does: three lines, the cursor at the end of the last one.
        (
            "a 0\nb 0\nc 0\r\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2Ka 1\nb 1\nc 1\r\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2Ka 2\nb 2\nc 2\nend\n",
            "a 0\nb 0\na 2\nb 2\nc 2\nend\n",
        ),
        // As tqdm does with two bars: the cursor at the first one.
        ("\r1: 0\n\r2: 0\x1b[A\r1: 5\n\r2: 7\x1b[A\r1: 9\n\r2: 9\x1b[A\n\nend\n", "1: 0\n1: 9\n2: 9\nend\n"),
        ("a\nb\n\x1b[2A\x1b[Jc\n", "a\nb\nc\n"),
        ("one\ntwo\x1b[H\x1b[2Jthree\n", "one\ntwo\nthree\n"),
        ("tab\tand \x00 zero\n", "tab\tand \x00 zero\n"),
    ] {
        for size in [1, 2, 3, 7, 1000] {
            assert_eq!(stored(output.as_bytes(), size), expected, "{output:?} in pieces of {size}");
        }
    }
}

/// Proves that each state of a line that was drawn over is counted once, however the script goes back and whatever the
/// colours, and that none is which the log has: lines that only end, a state that is redrawn as it was, and one that
/// was passed on meanwhile.
#[test]
fn states_that_are_drawn_over_are_counted() {
    let drawn_over = |output: &str| {
        let (mut redrawn, mut lines) = (Redrawn::new(), Vec::new());
        redrawn.push(output.as_bytes(), 0, &mut lines);
        redrawn.finish(&mut lines);
        redrawn.drawn_over()
    };
    for (output, expected) in [
        ("one\ntwo\n\nlast", 0),
        ("with\r\nreturns\r\n", 0),
        ("10%\r\x1b[32m5\x1b[0m0%\r\x1b[32m9\x1b[0m9%\ndone\n", 2),
        ("loss 0.5\r\x1b[Kloss 0.4\r\x1b[Kloss 0.3\n", 2),
        ("loss 0.5\x1b[2K\rloss 0.4\n", 1),
        ("long line\rshort\x1b[K\n", 1),
        ("50%\x08\x08\x0875%\n", 1),
        ("50%\r50%\r50%\n", 0),
        ("a 0\nb 0\r\x1b[2K\x1b[1A\x1b[2Ka 1\nb 1\nend\n", 1),
    ] {
        assert_eq!(drawn_over(output), expected, "{output:?}");
    }
    let (mut redrawn, mut lines) = (Redrawn::new(), Vec::new());
    redrawn.push(b"10%", 0, &mut lines);
    redrawn.tick(HOLD_MICROS, &mut lines);
    redrawn.push(b"\r20%\r30%\n", HOLD_MICROS, &mut lines);
    assert_eq!(redrawn.drawn_over(), 1, "the log has the first state");
}

/// Proves that bytes that are no text, and sequences that make no sense, are no reason to stop or to store without bounds.
#[test]
fn odd_bytes_are_harmless() {
    let mut seed: u64 = 7;
    let words: [&[u8]; 12] = [
        b"\x1b[", b"A", b"9999999999999999999B", b"\r", b"\n", b"\x1b[J", b"\x1b[H", b"\xf0\x9f", b"\x80",
        b"x", b"\x1b", b";",
    ];
    for size in [1, 5, 64] {
        let mut output = Vec::new();
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            output.extend_from_slice(words[(seed >> 33) as usize % words.len()]);
        }
        let (mut redrawn, mut lines) = (Redrawn::new(), Vec::new());
        for (now, piece) in output.chunks(size).enumerate() {
            redrawn.push(piece, now as i64 * 1000, &mut lines);
            redrawn.tick(now as i64 * 1000, &mut lines);
            assert!(redrawn.rows.len() <= ROWS_MAX + 1);
        }
        redrawn.finish(&mut lines);
    }
    let plain = vec![b'x'; 3 * CELLS_MAX + 5];
    assert_eq!(stored(&plain, 4096).len(), plain.len(), "a line without an end is whole");
}

/// Proves that plain lines wait for nothing, and that of a bar that is drawn for a minute a state is stored every ten seconds.
#[test]
fn a_long_bar_is_seen_while_it_is_drawn() {
    let (mut redrawn, mut lines) = (Redrawn::new(), Vec::new());
    redrawn.push(b"epoch 1\n", 0, &mut lines);
    assert_eq!((lines.as_slice(), redrawn.wake_at()), (&b"epoch 1\n"[..], None));
    lines.clear();
    for second in 0..60 {
        let now = second * 1_000_000;
        redrawn.tick(now, &mut lines);
        redrawn.push(format!("\r{second} of 60").as_bytes(), now, &mut lines);
        assert!(redrawn.wake_at().is_some_and(|at| at <= now + HOLD_MICROS));
    }
    redrawn.push(b"\n", 60_000_000, &mut lines);
    let states = "9 of 60\r19 of 60\r29 of 60\r39 of 60\r49 of 60\r59 of 60\n";
    let text = String::from_utf8(lines).unwrap();
    assert_eq!(text, states);
    assert_eq!(redrawn.wake_at(), None);
}

/// Proves that lines that are drawn from above are seen every ten seconds as well, wherever the cursor rests, and that plain lines behind
/// them wait for nothing once it is over.
#[test]
fn lines_that_are_drawn_again_are_seen_too() {
    let (mut redrawn, mut lines) = (Redrawn::new(), Vec::new());
    redrawn.push(b"\r1: 0\n\r2: 0\x1b[A", 0, &mut lines);
    redrawn.push(b"\r1: 5\n\r2: 7\x1b[A", 1, &mut lines);
    assert_eq!(lines, b"1: 0\n");
    lines.clear();
    redrawn.tick(HOLD_MICROS, &mut lines);
    assert_eq!(String::from_utf8_lossy(&lines), "1: 5\n2: 7\n");
    lines.clear();
    redrawn.tick(3 * HOLD_MICROS, &mut lines);
    assert_eq!((lines.as_slice(), redrawn.wake_at()), (&b""[..], None), "nothing new");
    redrawn.push(b"\r1: 6\n\n", 4 * HOLD_MICROS, &mut lines);
    redrawn.tick(5 * HOLD_MICROS, &mut lines);
    redrawn.push(b"plain\n", 6 * HOLD_MICROS, &mut lines);
    redrawn.tick(7 * HOLD_MICROS, &mut lines);
    redrawn.push(b"more\n", 8 * HOLD_MICROS, &mut lines);
    assert_eq!(String::from_utf8_lossy(&lines), "1: 6\nplain\nmore\n");
}
