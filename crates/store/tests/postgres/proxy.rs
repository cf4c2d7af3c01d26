//! A proxy between a store and its server that breaks connections at a chosen message.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// What to do when a message comes by.
pub(crate) enum Plan {
    /// Break both sides; the server never sees the message.
    Cut,
    /// Let the server see it and answer, and break the client's side without passing the answer on.
    SwallowReply,
    /// Break the client's side and keep the message; what becomes of it is decided later.
    Hold(oneshot::Receiver<Fate>),
}

/// What becomes of a message that was held.
#[derive(Debug)]
pub(crate) enum Fate {
    /// The server gets it.
    Forward,
    /// The server's side breaks too.
    Drop,
}

struct Trap {
    text: &'static str,
    plan: Plan,
}

/// Listens on a port of its own. Broken connections are made anew by whoever needs them; new ones go through.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    traps: Arc<Mutex<VecDeque<Trap>>>,
}

impl Proxy {
    /// In front of the server at that address.
    pub(crate) async fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let traps = Arc::<Mutex<VecDeque<Trap>>>::default();
        let watched = Arc::clone(&traps);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let traps = Arc::clone(&watched);
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(server).await {
                        let _ = serve(client, server, &traps).await;
                    }
                });
            }
        });
        Proxy { port, traps }
    }

    /// The next message that contains the text meets that plan, once.
    pub(crate) fn trap(&self, text: &'static str, plan: Plan) {
        self.traps.lock().unwrap().push_back(Trap { text, plan });
    }

    /// Whether all traps were sprung.
    pub(crate) fn is_idle(&self) -> bool {
        self.traps.lock().unwrap().is_empty()
    }
}

async fn serve(client: TcpStream, server: TcpStream, traps: &Mutex<VecDeque<Trap>>) -> io::Result<()> {
    let (from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let (stop, stopped) = oneshot::channel();
    let replies = tokio::spawn(replies(from_server, to_client, stopped));
    let (plan, message) = requests(from_client, &mut to_server, traps).await?;
    // From here on the client hears nothing.
    let _ = stop.send(());
    let (mut from_server, to_client) = replies.await?;
    match plan {
        Plan::Cut => {}
        Plan::SwallowReply => {
            to_server.write_all(&message).await?;
            done(&mut from_server).await?;
        }
        Plan::Hold(fate) => {
            drop(to_client);
            if let Ok(Fate::Forward) = fate.await {
                to_server.write_all(&message).await?;
                done(&mut from_server).await?;
            }
        }
    }
    Ok(())
}

/// Waits until the server says that it committed; nobody else will see it.
async fn done(server: &mut OwnedReadHalf) -> io::Result<()> {
    let mut heard = Vec::new();
    while !heard.windows(7).any(|window| window == b"COMMIT\0") {
        if server.read_buf(&mut heard).await? == 0 {
            break;
        }
    }
    Ok(())
}

/// Passes replies on until told to stop; then gives both sides back.
async fn replies(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    mut stop: oneshot::Receiver<()>,
) -> (OwnedReadHalf, OwnedWriteHalf) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        tokio::select! {
            _ = &mut stop => return (server, client),
            read = server.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return (server, client),
                Ok(bytes) => {
                    if client.write_all(&buffer[..bytes]).await.is_err() {
                        return (server, client);
                    }
                }
            },
        }
    }
}

/// Passes requests on, message by message, until one is trapped.
async fn requests(
    mut client: OwnedReadHalf,
    server: &mut OwnedWriteHalf,
    traps: &Mutex<VecDeque<Trap>>,
) -> io::Result<(Plan, Vec<u8>)> {
    // The first message has no type, only a length.
    let mut typed = false;
    loop {
        let message = read_message(&mut client, typed).await?;
        typed = true;
        if let Some(plan) = sprung(traps, &message) {
            return Ok((plan, message));
        }
        server.write_all(&message).await?;
    }
}

async fn read_message(client: &mut OwnedReadHalf, typed: bool) -> io::Result<Vec<u8>> {
    let head = usize::from(typed) + 4;
    let mut message = vec![0; head];
    client.read_exact(&mut message).await?;
    let length: [u8; 4] = message[head - 4..].try_into().unwrap();
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
    message.resize(usize::from(typed) + length, 0);
    client.read_exact(&mut message[head..]).await?;
    Ok(message)
}

fn sprung(traps: &Mutex<VecDeque<Trap>>, message: &[u8]) -> Option<Plan> {
    let mut traps = traps.lock().unwrap();
    let text = traps.front()?.text.as_bytes();
    let found = message.windows(text.len()).any(|window| window == text);
    if found { traps.pop_front().map(|trap| trap.plan) } else { None }
}
