//! What an engine costs while there is nothing to do.

use outlast::{Ctx, Handler, TaskContext};

use crate::place::{Place, seconds};

/// Statements a second that an idle engine may cost.
const QUERIES_MAX: usize = 4;
const LONG: u64 = 300;

async fn work(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    ctx.task::<u32>("double", &21).await
}

async fn double(_: TaskContext, number: u32) -> outlast::Result<u32> {
    Ok(2 * number)
}

/// The server says what it is asked by one user.
fn listened_to() -> Place {
    let user = format!("idle_{}", std::process::id());
    let founder = Place::postgres("idle_founder").unexamined();
    founder.write(&format!("CREATE ROLE {user} LOGIN SUPERUSER; ALTER ROLE {user} SET log_statement = 'all'"));
    Place::postgres_as(&user, "idle")
}

/// How many statements it was sent so far.
fn statements(place: &Place) -> usize {
    let log = place.texts("SELECT pg_read_file('server.log')").concat();
    log.lines().filter(|line| line.contains("LOG:  execute ") || line.contains("LOG:  statement: ")).count()
}

#[test]
fn an_idle_engine_and_its_worker_ask_postgresql_at_most_four_questions_a_second() {
    let place = listened_to();
    place.world.block_on(async {
        let engine = place.engine().poll(seconds(1)).lease(seconds(15));
        let engine = engine.workflow("work", work).handler(Handler::new("double", double)).start().await.unwrap();
        let run = engine.start("work", &()).id("r").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 42);
        place.world.sleep(seconds(70)).await;
        let before = statements(&place);
        place.world.sleep(seconds(LONG)).await;
        let (asked, long) = (statements(&place) - before, usize::try_from(LONG).unwrap());
        assert!(asked >= long, "{asked}: it looks for what nobody gives notice of every second, and nobody counted");
        assert!(asked <= QUERIES_MAX * long, "{asked} statements in {long} s");
        // And it still finds what there is.
        let run = engine.start("work", &()).id("again").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 42);
        println!("an idle engine: {:.2} statements a second", asked as f64 / long as f64);
    });
}

/// "None to SQLite": with a worker in the process, and runs that wait.
#[test]
fn an_idle_engine_and_its_worker_ask_a_sqlite_file_nothing() {
    async fn wait(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let hour = ctx.sleep(seconds(3_600)).start();
        let number = ctx.wait_for::<u32>("go").await?;
        hour.await?;
        ctx.task("double", &number).await
    }
    let place = Place::sqlite();
    place.world.block_on(async {
        let process = place.process();
        let engine = process.engine().sole().poll(seconds(1)).lease(seconds(15)).version_grace(seconds(300));
        let engine = engine.workflow("work", work).workflow("wait", wait).handler(Handler::new("double", double));
        let engine = engine.start().await.unwrap();
        let run = engine.start("wait", &()).id("wait").await.unwrap();
        let work = engine.start("work", &()).id("r").await.unwrap();
        assert_eq!(work.result::<u32>().await.unwrap(), 42);
        place.world.sleep(seconds(10)).await;
        let before = process.faults().log().len();
        place.world.sleep(seconds(280)).await;
        let asked = process.faults().log().split_off(before);
        assert!(asked.is_empty(), "{asked:?}");
        // And it hears of everything at once.
        run.signal("go", &4, "1").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 8);
        assert!(place.world.elapsed() < seconds(3_601), "{:?}", place.world.elapsed());
    });
}
