//! A client program of the benchmarks: a reflector of kube-rs with its store, typed.
use std::{
    path::PathBuf,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use crd_controller_bench::Foo;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    runtime::{reflector, reflector::reflector as reflect, watcher},
};
use serde::{Deserialize, de::DeserializeOwned};

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    server: String,
    #[serde(default)]
    ca_file: Option<PathBuf>,
    kind: String,
    mode: String,
    events: usize,
    latency: bool,
}

#[derive(Clone, Copy)]
struct Reading {
    cpu_ms: f64,
    wall: Instant,
    peak_rss_kb: i64,
}

fn read() -> Reading {
    // SAFETY: getrusage writes a complete rusage.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ms = |time: libc::timeval| time.tv_sec as f64 * 1000.0 + time.tv_usec as f64 / 1000.0;
    Reading {
        cpu_ms: ms(usage.ru_utime) + ms(usage.ru_stime),
        wall: Instant::now(),
        peak_rss_kb: usage.ru_maxrss,
    }
}

/// Allocated bytes, as malloc counts them.
fn heap_bytes() -> usize {
    // SAFETY: mallinfo2 has no preconditions.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

fn report(line: serde_json::Value, since: Reading, now: Reading) {
    let mut line = line;
    line["cpuMs"] = (now.cpu_ms - since.cpu_ms).into();
    line["wallMs"] = (now.wall.duration_since(since.wall).as_secs_f64() * 1000.0).into();
    line["peakRssKb"] = now.peak_rss_kb.into();
    println!("{line}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1).ok_or("no options")?;
    let options: Options = serde_json::from_str(&argument)?;
    let start_heap = heap_bytes();
    let start = read();
    let mut config = Config::new(options.server.parse()?);
    config.root_cert_file.clone_from(&options.ca_file);
    let client = Client::try_from(config)?;
    if options.kind == "pods" {
        run(Api::<Pod>::all(client), options, start, start_heap).await
    } else {
        run(Api::<Foo>::all(client), options, start, start_heap).await
    }
    Ok(())
}

async fn run<K>(api: Api<K>, options: Options, start: Reading, start_heap: usize)
where
    K: Resource<DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
{
    let (store, writer) = reflector::store();
    let config = match options.mode.as_str() {
        "stream" => watcher::Config::default().streaming_lists(),
        _ => watcher::Config::default(),
    };
    let mut events = std::pin::pin!(reflect(writer, watcher(api, config)));
    loop {
        match events.next().await.expect("the watch has no end") {
            Ok(watcher::Event::InitDone) => break,
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let synced = read();
    let line = serde_json::json!({
        "at": "synced",
        "heapBytes": heap_bytes().saturating_sub(start_heap),
        "rssKb": rss_kb(),
        "checksum": checksum(&store),
    });
    let begin = read();
    report(line, start, synced);
    let mut latencies = Vec::new();
    let mut handled = 0;
    while handled < options.events {
        let Some(Ok(watcher::Event::Apply(object))) = events.next().await else {
            // A watch that has expired, and the relist after it.
            continue;
        };
        handled += 1;
        if options.latency {
            let sent: f64 = object.annotations()["sent"].parse().expect("a number");
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .expect("a time");
            latencies.push(now.as_secs_f64() * 1000.0 - sent / 1000.0);
        }
    }
    if options.events == 0 {
        return;
    }
    let end = read();
    let mut line = serde_json::json!({"at": "stormed", "checksum": checksum(&store)});
    if options.latency {
        line["latencies"] = latencies.into();
    }
    report(line, begin, end);
}

/// Returns names and versions as one number that does not depend on the order.
fn checksum<K: Resource<DynamicType = ()> + Clone>(store: &reflector::Store<K>) -> u32 {
    let mut sum = 0_u32;
    for object in store.state() {
        let namespace = object.namespace().unwrap_or_default();
        let version = object.resource_version().unwrap_or_default();
        let mut hash = 0x811c_9dc5_u32;
        for byte in format!("{namespace}/{}/{version}", object.name_any()).bytes() {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
        sum = sum.wrapping_add(hash);
    }
    sum
}

fn rss_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    text.lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .expect("a number")
}
