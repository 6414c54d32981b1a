//! `MattersService`: lists matters, with their intervals and schedules.
//!
//! It reads only the index. A matter whose file cannot be read is listed too, without a state, because its schedule
//! stays. Names are a person's text.

use super::GrpcService;
use super::not_found;
use super::page;
use super::parse_record_path;
use super::refusal;
use crate::grpc::enums;
use steward_domain::fleet::names::VaultNames;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_proto::v1;
use steward_proto::v1::matters_service_server::MattersService;
use steward_vault::index::MatterFilter;
use tonic::{Request, Response, Status};

const LIST: &str = "matters";

#[tonic::async_trait]
impl MattersService for GrpcService {
    async fn list_matters(
        &self,
        request: Request<v1::ListMattersRequest>,
    ) -> Result<Response<v1::ListMattersResponse>, Status> {
        let request = request.into_inner();
        let filter = MatterFilter { state: enums::decode_state_filter(request.state)?, ..MatterFilter::default() };
        let (after, size) =
            (page::parse_page_token::<String>(LIST, &request.page_token)?, page::parse_page_size(request.page_size)?);
        let page = self
            .views
            .read()
            .matters_page(&filter, after.as_deref(), size, chrono::Utc::now())
            .await
            .map_err(refusal::index_error)?;
        let cadence = self.read_settings().cadence;
        let encode_card = |card: steward_vault::index::MatterCard| {
            let interval = cadence.matter_interval_seconds(card.streak);
            encode_matter(self.temporal.names(), &card.path, card.name, card.state, interval)
        };
        let matters = page.rows.into_iter().map(encode_card).collect();
        Ok(Response::new(v1::ListMattersResponse {
            matters,
            next_page_token: page::encode_page_token(LIST, page.next),
        }))
    }

    async fn get_matter(
        &self,
        request: Request<v1::GetMatterRequest>,
    ) -> Result<Response<v1::GetMatterResponse>, Status> {
        let path = parse_record_path(RecordKind::Matter, "path", &request.into_inner().path)?;
        let known = self.views.read().find_subject(&path).await.map_err(refusal::index_error)?;
        if known.is_none() && !self.views.root().exists(&path) {
            return Err(not_found(&format!("{path}: not in the vault")));
        }
        let cadence = self.read_settings().cadence;
        let interval = self.views.read().read_matter_interval(&path, &cadence).await.map_err(refusal::index_error)?;
        let (name, state) = known.map_or_else(|| (path.slug().to_owned(), None), |row| (row.name, Some(row.state)));
        Ok(Response::new(v1::GetMatterResponse {
            matter: Some(encode_matter(self.temporal.names(), &path, name, state, interval)),
        }))
    }
}

fn encode_matter(
    names: &VaultNames,
    path: &RecordPath,
    name: String,
    state: Option<RecordState>,
    interval_seconds: u32,
) -> v1::Matter {
    v1::Matter {
        path: path.to_string(),
        name,
        state: state.map(enums::state).unwrap_or_default(),
        interval_seconds,
        schedule_id: names.qualify_id(&steward_workflows::schedule_id(path)),
    }
}
