//! spider: crawls from the first URL of a file to the end, and appends URL and body of each page to
//! a file.
//!
//!     spiderpeer URLS STORE THREADS
//!
//! Settings: the crate's default features, other hosts' links followed, robots.txt obeyed, so many
//! requests at once, no limit of depth, a subscription with room for every page.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::{env, iter};

use spider::tokio;
use spider::tokio::sync::broadcast::error::RecvError;
use spider::website::Website;

const ROOM: usize = 1 << 16;

#[tokio::main]
async fn main() {
    let words: Vec<String> = env::args().collect();
    let seeds = fs::read_to_string(&words[1]).expect("URLS");
    let mut store = BufWriter::with_capacity(1 << 20, File::create(&words[2]).expect("STORE"));
    let threads: usize = words[3].parse().expect("THREADS");

    let mut website = Website::new(seeds.split_whitespace().next().expect("a URL"));
    website
        .with_external_domains(Some(iter::once("*".to_string())))
        .with_respect_robots_txt(true)
        .with_concurrency_limit(Some(threads))
        .with_depth(0)
        .with_user_agent(Some("benchmark"));
    let mut pages = website.subscribe(ROOM);
    let stored = tokio::spawn(async move {
        let mut count = 0;
        loop {
            match pages.recv().await {
                Ok(page) => {
                    let body = page.get_html_bytes_u8();
                    if page.status_code.is_success() && !body.is_empty() {
                        write!(store, "{}\n\n", page.get_url()).expect("STORE");
                        store.write_all(body).expect("STORE");
                        count += 1;
                    }
                }
                Err(RecvError::Lagged(lost)) => eprintln!("{lost} pages were not stored"),
                Err(RecvError::Closed) => break,
            }
        }
        store.flush().expect("STORE");
        count
    });
    website.crawl().await;
    website.unsubscribe();
    println!("{}", stored.await.expect("the writer"));
}
