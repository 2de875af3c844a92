//! From words to a rule. First a tree in which everything may stand everywhere, then what of it is a condition and what
//! a number: so that a mistake is told as what it is.

use std::ops::Range;

use super::lexer::{KEYWORDS, Lexeme, Token, words};
use super::{Comparison, Condition, Expression, Operand, Operator, Relation, RuleError, Which};

/// Brackets and signs within one another.
const MAX_DEPTH: usize = 50;

struct Node {
    kind: Kind,
    span: Range<usize>,
}

enum Kind {
    Number(f64),
    Value(Operand),
    /// `previous` without a metric.
    Previous,
    Negative(Box<Node>),
    Binary(Box<Node>, Operator, Box<Node>),
    Compare(Box<Node>, Relation, Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

pub(super) fn parse(text: &str) -> Result<Condition, RuleError> {
    let mut parser = Parser { words: words(text)?, at: 0, depth: 0 };
    let node = parser.any()?;
    match parser.peek() {
        Token::End => condition(node, text),
        Token::Close => Err(parser.wrong("closes a bracket that was never opened")),
        _ => Err(parser
            .wrong("goes on where it should end")
            .hint("put comparisons together with `and` or `or`")),
    }
}

struct Parser {
    words: Vec<Lexeme>,
    at: usize,
    depth: usize,
}

impl RuleError {
    fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.words[self.at].token
    }

    fn span(&self) -> Range<usize> {
        self.words[self.at].span.clone()
    }

    /// The word, and on to the next; at the end it stays there.
    fn next(&mut self) -> Lexeme {
        let word = self.words[self.at].clone();
        self.at = (self.at + 1).min(self.words.len() - 1);
        word
    }

    fn wrong(&self, message: &str) -> RuleError {
        RuleError::new(message, self.span())
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_here = matches!(self.peek(), Token::Word(found) if found == word);
        if is_here {
            self.next();
        }
        is_here
    }

    fn any(&mut self) -> Result<Node, RuleError> {
        self.series("or", Self::all, Kind::Any)
    }

    fn all(&mut self) -> Result<Node, RuleError> {
        self.series("and", Self::compare, Kind::All)
    }

    fn series(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Node, RuleError>,
        kind: fn(Vec<Node>) -> Kind,
    ) -> Result<Node, RuleError> {
        let mut parts = vec![part(self)?];
        while self.take_word(word) {
            parts.push(part(self)?);
        }
        let span = parts[0].span.start..parts[parts.len() - 1].span.end;
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Node { kind: kind(parts), span } })
    }

    fn compare(&mut self) -> Result<Node, RuleError> {
        let left = self.sum()?;
        let Token::Relation(relation) = *self.peek() else { return Ok(left) };
        self.next();
        let right = self.sum()?;
        if matches!(self.peek(), Token::Relation(_)) {
            return Err(self
                .wrong("compares three things at once")
                .hint("write two comparisons with `and` between them"));
        }
        let span = left.span.start..right.span.end;
        Ok(Node { kind: Kind::Compare(Box::new(left), relation, Box::new(right)), span })
    }

    fn sum(&mut self) -> Result<Node, RuleError> {
        self.chain(&[Operator::Add, Operator::Subtract], Self::product)
    }

    fn product(&mut self) -> Result<Node, RuleError> {
        self.chain(&[Operator::Multiply, Operator::Divide], Self::signed)
    }

    fn chain(
        &mut self,
        operators: &[Operator],
        part: fn(&mut Self) -> Result<Node, RuleError>,
    ) -> Result<Node, RuleError> {
        let mut left = part(self)?;
        while let Token::Operator(operator) = *self.peek()
            && operators.contains(&operator)
        {
            self.next();
            let right = part(self)?;
            let span = left.span.start..right.span.end;
            left = Node { kind: Kind::Binary(Box::new(left), operator, Box::new(right)), span };
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Node, RuleError> {
        if *self.peek() != Token::Operator(Operator::Subtract) {
            return self.primary();
        }
        let start = self.next().span.start;
        let inner = self.deeper(Self::signed)?;
        let span = start..inner.span.end;
        Ok(Node { kind: Kind::Negative(Box::new(inner)), span })
    }

    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, RuleError>) -> Result<T, RuleError> {
        if self.depth == MAX_DEPTH {
            return Err(self.wrong("is nested too deep"));
        }
        self.depth += 1;
        let parsed = part(self);
        self.depth -= 1;
        parsed
    }

    fn primary(&mut self) -> Result<Node, RuleError> {
        let Lexeme { token, span } = self.words[self.at].clone();
        match token {
            Token::Number(number) => {
                self.next();
                Ok(Node { kind: Kind::Number(number), span })
            }
            Token::Open => {
                self.next();
                let inner = self.deeper(Self::any)?;
                let end = self.close(span.start)?;
                // A comparison is shown without the brackets around it.
                let is_comparison = matches!(inner.kind, Kind::Compare(..));
                let span = if is_comparison { inner.span } else { span.start..end };
                Ok(Node { kind: inner.kind, span })
            }
            Token::Word(word) if word == "previous" => {
                self.next();
                if *self.peek() != Token::Open {
                    return Ok(Node { kind: Kind::Previous, span });
                }
                self.next();
                let operand = Operand { previous: true, ..self.operand()? };
                let end = self.close(span.start)?;
                Ok(Node { kind: Kind::Value(operand), span: span.start..end })
            }
            Token::Word(_) | Token::Quoted(_) => {
                let operand = self.operand()?;
                let end = self.words[self.at - 1].span.end;
                Ok(Node { kind: Kind::Value(operand), span: span.start..end })
            }
            Token::End => Err(self.wrong("ends where a metric or a number should follow")),
            _ => Err(self.wrong("lacks a metric or a number here")),
        }
    }

    fn close(&mut self, opened: usize) -> Result<usize, RuleError> {
        match self.peek() {
            Token::Close => Ok(self.next().span.end),
            Token::End => Err(RuleError::new("opens a bracket that is never closed", opened..opened + 1)),
            _ => Err(self.wrong("lacks a `)` here")),
        }
    }

    /// `name`, `last(name)`, `best(name)`, `best(max name)`, `best(min name)`.
    fn operand(&mut self) -> Result<Operand, RuleError> {
        let is_call = self.words.get(self.at + 1).is_some_and(|next| next.token == Token::Open);
        let (Token::Word(word), true) = (self.peek().clone(), is_call) else {
            return Ok(Operand { metric: self.metric()?, which: Which::Last, previous: false });
        };
        if !matches!(word.as_str(), "best" | "last") {
            let hint = "there are `last(metric)`, `best(metric)`, `best(max metric)` and `previous(metric)`";
            return Err(self.wrong(&format!("asks for `{word}(…)`, which there is not")).hint(hint));
        }
        self.next();
        let opened = self.next().span.start;
        let greatest = word == "best" && self.take_word("max");
        if word == "best" && !greatest {
            self.take_word("min");
        }
        let metric = self.metric()?;
        self.close(opened)?;
        let which = match (word.as_str(), greatest) {
            ("last", _) => Which::Last,
            (_, true) => Which::Greatest,
            (_, false) => Which::Least,
        };
        Ok(Operand { metric, which, previous: false })
    }

    fn metric(&mut self) -> Result<String, RuleError> {
        match self.peek().clone() {
            Token::Word(word) if KEYWORDS.contains(&word.as_str()) => Err(self
                .wrong(&format!("uses `{word}` as a metric"))
                .hint(format!("a metric of that name stands in backticks: `` `{word}` ``"))),
            Token::Word(name) | Token::Quoted(name) => {
                self.next();
                Ok(name)
            }
            Token::End => Err(self.wrong("ends where a metric should follow")),
            _ => Err(self.wrong("lacks a metric here")),
        }
    }
}

fn condition(node: Node, text: &str) -> Result<Condition, RuleError> {
    let all =
        |parts: Vec<Node>| parts.into_iter().map(|part| condition(part, text)).collect::<Result<_, _>>();
    match node.kind {
        Kind::All(parts) => Ok(Condition::All(all(parts)?)),
        Kind::Any(parts) => Ok(Condition::Any(all(parts)?)),
        Kind::Compare(left, relation, right) => {
            let meant = metric_of(&[&left, &right]);
            let (left, right) = (expression(*left, meant.as_ref())?, expression(*right, meant.as_ref())?);
            let shown = text[node.span].to_owned();
            Ok(Condition::Compare(Comparison { left, relation, right, text: shown }))
        }
        _ => Err(RuleError::new("is a number, and not a condition, here", node.span)
            .hint("compare it, such as `val_loss < 0.5`")),
    }
}

/// What `previous` alone means in a comparison: the one value that it is about.
fn metric_of(sides: &[&Node]) -> Option<Operand> {
    fn collect(node: &Node, found: &mut Vec<Operand>) {
        match &node.kind {
            Kind::Value(operand) if !operand.previous && !found.contains(operand) => {
                found.push(operand.clone())
            }
            Kind::Negative(inner) => collect(inner, found),
            Kind::Binary(left, _, right) => {
                collect(left, found);
                collect(right, found);
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    sides.iter().for_each(|side| collect(side, &mut found));
    if found.len() == 1 { found.pop() } else { None }
}

fn expression(node: Node, meant: Option<&Operand>) -> Result<Expression, RuleError> {
    let inner = |node: Box<Node>| expression(*node, meant).map(Box::new);
    match node.kind {
        Kind::Number(number) => Ok(Expression::Number(number)),
        Kind::Value(operand) => Ok(Expression::Value(operand)),
        Kind::Previous => match meant {
            Some(operand) => Ok(Expression::Value(Operand { previous: true, ..operand.clone() })),
            None => Err(RuleError::new("does not say of which metric `previous` is", node.span)
                .hint("name it: `previous(val_loss)`")),
        },
        Kind::Negative(node) => Ok(Expression::Negative(inner(node)?)),
        Kind::Binary(left, operator, right) => Ok(Expression::Binary(inner(left)?, operator, inner(right)?)),
        Kind::Compare(..) | Kind::All(_) | Kind::Any(_) => {
            Err(RuleError::new("is a condition, and not a number, here", node.span))
        }
    }
}
