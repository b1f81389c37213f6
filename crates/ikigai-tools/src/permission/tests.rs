mod deciding;
mod lines;
mod matching;
