//! Stand-in until the real one lands.
use temporalio_sdk::runtime::RuntimeOptions;
use temporalio_sdk::plugins::SimplePlugin;
pub(crate) struct Telemetry;
pub(crate) fn init() -> anyhow::Result<Telemetry> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(std::env::var("STEWARD_LOG").unwrap_or("info,temporalio=warn,temporalio_sdk_core=warn,temporalio_client=warn".into())).init();
    Ok(Telemetry)
}
impl Telemetry {
    pub(crate) fn plugin(&self) -> Option<SimplePlugin> { None }
    pub(crate) fn runtime_options(&self) -> anyhow::Result<RuntimeOptions> { RuntimeOptions::builder().build().map_err(|e| anyhow::anyhow!(e)) }
    pub(crate) async fn shutdown(self) {}
}
