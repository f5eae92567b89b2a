#![allow(unused)]

use greenroom::prelude::*;

#[actor]
pub async fn counter() {}

fn main() {}
