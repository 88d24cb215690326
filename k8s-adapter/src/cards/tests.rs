mod ask;
mod node;
mod plan;
mod settle;
