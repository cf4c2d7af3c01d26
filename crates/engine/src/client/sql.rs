//! Questions in SQL, for operators.

use outlast_store::{SqlAnswer, SqlQuestion};

use super::EngineError;
use crate::engine::Engine;

impl Engine {
    /// Answers a question in SQL that only reads, about the tables as they are ([`SqlQuestion`]). It sees every namespace: let only
    /// those ask who may. The tables may change with every version; whatever programs need, the other calls give.
    pub async fn ask_sql(&self, question: SqlQuestion) -> Result<SqlAnswer, EngineError> {
        Ok(self.inner.store()?.sql(question).await?)
    }
}
