//! A server that answers as a story wants it to, and remembers what it was asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// What a server was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// `GET /path HTTP/1.1`
    pub(crate) line: String,
    /// In lower case, `name: value`.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|header| header.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }
}

/// A server that runs until its runtime ends.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Asked) -> String + Send + Sync + 'static) -> Server {
        Server::at("127.0.0.1:0", answer).await
    }

    pub(crate) async fn at(address: &str, answer: impl Fn(&Asked) -> String + Send + Sync + 'static) -> Server {
        Server::with(address, None, answer).await
    }

    /// One that speaks TLS, if it is given a certificate.
    pub(crate) async fn with(
        address: &str,
        tls: Option<tokio_rustls::TlsAcceptor>,
        answer: impl Fn(&Asked) -> String + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let serve = async move {
            while let Ok((stream, _)) = listener.accept().await {
                match &tls {
                    None => converse(stream, &answer, &noted).await,
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => converse(stream, &answer, &noted).await,
                        Err(_) => noted.lock().unwrap().push(Asked { line: "no TLS".to_owned(), ..Asked::default() }),
                    },
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "a server runs beside its story")]
        tokio::spawn(serve);
        Server { address, asked }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn asked_once(&self) -> Asked {
        let asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked.into_iter().next().unwrap()
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: &impl Fn(&Asked) -> String,
    noted: &Mutex<Vec<Asked>>,
) {
    let mut stream = BufReader::new(stream);
    let mut asked = Asked::default();
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    asked.line = line.trim_end().to_owned();
    loop {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        asked.headers.push(format!("{}: {value}", name.to_lowercase()));
    }
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    asked.body = String::from_utf8(body).unwrap();
    let text = answer(&asked);
    noted.lock().unwrap().push(asked);
    // Whoever asked may have heard enough.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// An answer with a status, headers (each with its line's end) and a body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

pub(crate) fn ok(body: &str) -> String {
    answer("200 OK", "content-type: text/plain\r\n", body)
}

pub(crate) fn redirect(status: &str, location: &str) -> String {
    answer(status, &format!("location: {location}\r\n"), "")
}
