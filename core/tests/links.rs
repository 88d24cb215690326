//! Link matrices and their tables, against texts of drivers, brute force and the rules of others.

#[path = "links/choice.rs"]
mod choice;
#[path = "links/dgx1.rs"]
mod dgx1;
#[path = "links/machines.rs"]
mod machines;
#[path = "links/reference.rs"]
mod reference;
#[path = "links/text.rs"]
mod text;
