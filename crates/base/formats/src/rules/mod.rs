//! What values must show: the language of rules, and the gates and promotions that are judged by them.

pub mod gate;
pub mod promotion;
pub mod rule;
