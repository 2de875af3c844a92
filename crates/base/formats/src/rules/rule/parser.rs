//! From tokens to a rule. First a tree in which everything may be everywhere, then which parts of it are conditions and
//! which numbers: so that the error describes the mistake.

use std::ops::Range;

use super::lexer::{Lexeme, Token, is_keyword, words};
use super::{Condition, Expression, Operand, Operator, Relation, RuleComparison, RuleError};

/// Brackets and signs within one another.
const MAX_DEPTH: usize = 50;

struct Node<O> {
    kind: Kind<O>,
    span: Range<usize>,
}

enum Kind<O> {
    Number(f64),
    Value(O),
    /// [`Operand::OTHER`] alone.
    Other,
    Negative(Box<Node<O>>),
    Binary(Box<Node<O>>, Operator, Box<Node<O>>),
    Compare(Box<Node<O>>, Relation, Box<Node<O>>),
    All(Vec<Node<O>>),
    Any(Vec<Node<O>>),
}

pub(super) fn parse<O: Operand>(text: &str) -> Result<Condition<O>, RuleError> {
    let mut parser = Parser { words: words(text)?, at: 0, depth: 0 };
    let node: Node<O> = parser.any()?;
    match parser.peek() {
        Token::End => condition(node, text),
        Token::Close => Err(parser.wrong("closes a bracket that was never opened")),
        _ => {
            Err(parser.wrong("continues where it should end").hint("combine comparisons with `and` or `or`"))
        }
    }
}

/// The tokens of a rule, and the position in them.
pub struct Parser {
    words: Vec<Lexeme>,
    at: usize,
    depth: usize,
}

impl RuleError {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Parser {
    pub(crate) fn peek(&self) -> &Token {
        &self.words[self.at].token
    }

    fn span(&self) -> Range<usize> {
        self.words[self.at].span.clone()
    }

    /// Returns the token and moves to the next; at the end it stays there.
    pub(crate) fn next(&mut self) -> Lexeme {
        let word = self.words[self.at].clone();
        self.at = (self.at + 1).min(self.words.len() - 1);
        word
    }

    pub(crate) fn wrong(&self, message: &str) -> RuleError {
        RuleError::new(message, self.span())
    }

    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let is_here = matches!(self.peek(), Token::Word(found) if found == word);
        if is_here {
            self.next();
        }
        is_here
    }

    fn any<O: Operand>(&mut self) -> Result<Node<O>, RuleError> {
        self.series("or", Self::all, Kind::Any)
    }

    fn all<O: Operand>(&mut self) -> Result<Node<O>, RuleError> {
        self.series("and", Self::compare, Kind::All)
    }

    fn series<O>(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Node<O>, RuleError>,
        kind: fn(Vec<Node<O>>) -> Kind<O>,
    ) -> Result<Node<O>, RuleError> {
        let mut parts = vec![part(self)?];
        while self.take_word(word) {
            parts.push(part(self)?);
        }
        let span = parts[0].span.start..parts[parts.len() - 1].span.end;
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Node { kind: kind(parts), span } })
    }

    fn compare<O: Operand>(&mut self) -> Result<Node<O>, RuleError> {
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

    fn sum<O: Operand>(&mut self) -> Result<Node<O>, RuleError> {
        self.chain(&[Operator::Add, Operator::Subtract], Self::product)
    }

    fn product<O: Operand>(&mut self) -> Result<Node<O>, RuleError> {
        self.chain(&[Operator::Multiply, Operator::Divide], Self::signed)
    }

    fn chain<O>(
        &mut self,
        operators: &[Operator],
        part: fn(&mut Self) -> Result<Node<O>, RuleError>,
    ) -> Result<Node<O>, RuleError> {
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

    fn signed<O: Operand>(&mut self) -> Result<Node<O>, RuleError> {
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
            return Err(self.wrong("is nested too deeply"));
        }
        self.depth += 1;
        let parsed = part(self);
        self.depth -= 1;
        parsed
    }

    fn primary<O: Operand>(&mut self) -> Result<Node<O>, RuleError> {
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
            Token::Word(word) if word == O::OTHER => {
                self.next();
                if *self.peek() != Token::Open {
                    return Ok(Node { kind: Kind::Other, span });
                }
                self.next();
                let operand = O::parse(self)?.of_other();
                let end = self.close(span.start)?;
                Ok(Node { kind: Kind::Value(operand), span: span.start..end })
            }
            Token::Word(_) | Token::Quoted(_) => {
                let operand = O::parse(self)?;
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

    /// The name before an opening bracket, if that is what comes next.
    pub(crate) fn call(&self) -> Option<String> {
        let is_call = self.words.get(self.at + 1).is_some_and(|next| next.token == Token::Open);
        match self.peek() {
            Token::Word(word) if is_call => Some(word.clone()),
            _ => None,
        }
    }

    /// The content of the brackets of a call.
    pub(crate) fn argument<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, RuleError>,
    ) -> Result<T, RuleError> {
        self.next();
        let opened = self.next().span.start;
        let parsed = self.deeper(inner)?;
        self.close(opened)?;
        Ok(parsed)
    }

    /// A name that is none of the `keywords`, or is in backticks.
    pub(crate) fn metric(&mut self, keywords: &[&str]) -> Result<String, RuleError> {
        match self.peek().clone() {
            Token::Word(word) if is_keyword(&word, keywords) => Err(self
                .wrong(&format!("uses `{word}` as a metric"))
                .hint(format!("put a metric of that name in backticks: `` `{word}` ``"))),
            Token::Word(name) | Token::Quoted(name) => {
                self.next();
                Ok(name)
            }
            Token::End => Err(self.wrong("ends where a metric should follow")),
            _ => Err(self.wrong("lacks a metric here")),
        }
    }
}

fn condition<O: Operand>(node: Node<O>, text: &str) -> Result<Condition<O>, RuleError> {
    let all =
        |parts: Vec<Node<O>>| parts.into_iter().map(|part| condition(part, text)).collect::<Result<_, _>>();
    match node.kind {
        Kind::All(parts) => Ok(Condition::All(all(parts)?)),
        Kind::Any(parts) => Ok(Condition::Any(all(parts)?)),
        Kind::Compare(left, relation, right) => {
            let meant = metric_of(&[&left, &right]);
            let (left, right) = (expression(*left, meant.as_ref())?, expression(*right, meant.as_ref())?);
            let shown = text[node.span].to_owned();
            Ok(Condition::Compare(RuleComparison { left, relation, right, text: shown }))
        }
        _ => Err(RuleError::new("has a number here, not a condition", node.span)
            .hint(format!("compare it, such as `{} < 0.5`", O::EXAMPLE))),
    }
}

/// What [`Operand::OTHER`] alone means in a comparison: the one value that it is about.
fn metric_of<O: Operand>(sides: &[&Node<O>]) -> Option<O> {
    fn collect<O: Operand>(node: &Node<O>, found: &mut Vec<O>) {
        match &node.kind {
            Kind::Value(operand) if !operand.is_of_other() && !found.contains(operand) => {
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

fn expression<O: Operand>(node: Node<O>, meant: Option<&O>) -> Result<Expression<O>, RuleError> {
    let inner = |node: Box<Node<O>>| expression(*node, meant).map(Box::new);
    match node.kind {
        Kind::Number(number) => Ok(Expression::Number(number)),
        Kind::Value(operand) => Ok(Expression::Value(operand)),
        Kind::Other => match meant {
            Some(operand) => Ok(Expression::Value(operand.clone().of_other())),
            None => Err(RuleError::new(format!("does not name the metric of `{}`", O::OTHER), node.span)
                .hint(format!("name it: `{}({})`", O::OTHER, O::EXAMPLE))),
        },
        Kind::Negative(node) => Ok(Expression::Negative(inner(node)?)),
        Kind::Binary(left, operator, right) => Ok(Expression::Binary(inner(left)?, operator, inner(right)?)),
        Kind::Compare(..) | Kind::All(_) | Kind::Any(_) => {
            Err(RuleError::new("has a condition here, not a number", node.span))
        }
    }
}
