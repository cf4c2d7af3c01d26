//! Many pieces of work at once, some of which may fail.
//!
//! `cargo run --example fan_out` makes thumbnails of twelve pictures, four at a time. One is broken, which is tolerated; the
//! results of the others are kept, and a crash in the middle would repeat only what is not recorded.

use std::time::Duration;

use outlast::{BatchItem, Ctx, Error, Outlast};

async fn thumbnails(ctx: Ctx, pictures: Vec<String>) -> outlast::Result<String> {
    let batch = ctx
        .map("thumbnail", pictures, async |ctx: Ctx, picture: String, _| {
            // Each branch is a scope of its own: its steps have the keys `thumbnail/0/load`, `thumbnail/0/shrink` …
            let bytes: usize = ctx.step("load", async |_| load(&picture).await).await?;
            ctx.step("shrink", async |_| Ok(bytes / 100)).await
        })
        .max_concurrency(4)
        .tolerate_failures(1)
        .await?;
    for (place, item) in batch.items.iter().enumerate() {
        if let BatchItem::Failed(error) = item {
            println!("  picture {place}: {error}");
        }
    }
    Ok(format!("{} made, {} failed, {}", batch.succeeded(), batch.failed(), batch.reason.as_str()))
}

/// Loads a picture, slowly. A step's body may use Tokio, and anything else.
#[expect(clippy::disallowed_methods, reason = "this stands for a download, which takes real time")]
async fn load(picture: &str) -> outlast::Result<usize> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    if picture.ends_with("7.png") {
        return Err(Error::new("broken", format!("{picture} is not a picture")).permanent());
    }
    Ok(picture.len() * 1_000)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let engine = Outlast::sqlite(dir.path().join("pictures.db")).workflow("thumbnails", thumbnails).start().await?;
    let pictures: Vec<String> = (0..12).map(|n| format!("picture-{n}.png")).collect();
    let outcome: String = engine.start("thumbnails", &pictures).id("album-1").await?.result().await?;
    println!("{outcome}");
    engine.shutdown().await;
    Ok(())
}
