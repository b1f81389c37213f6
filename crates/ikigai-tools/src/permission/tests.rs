mod deciding;
mod granting;
mod lines;
mod matching;
mod wrapping;
