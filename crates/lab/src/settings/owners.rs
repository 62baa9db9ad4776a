//! Which owners of keys a point uses.

use nicforge_apps::options::{HotAreaOptions, HotItemsFrom, HotOptions, HotSketchOptions};
use nicforge_nic::{NicmemOptions, PoolOptions, PoolSize, RssOptions, TransmitOptions};
use nicforge_options::{Options, Owner};
use nicforge_stages::StageKind;
use nicforge_stages::l5p::L5pKind;

use super::Settings;
use crate::packet_loop::Burst;
use crate::run::options::*;
use crate::storm::options::StormOptions;
use crate::systems::options::{Iscsi, LinkOptions, Sockets, Streams, SwitchOptions, SystemOptions, TcpOptions, Web};
use crate::tas::LinuxOptions;
use crate::tas::options::{Carrier, RpcOptions, TasOptions};
use crate::tas::records::options::{AnswerFrom, LayerFive, NvmeOptions, RecordOptions, TlsOptions};
use crate::tasnic::options::TasnicOptions;

/// Owners that are chosen one after the other.
struct Chosen<'a> {
    settings: &'a Settings,
    is_chosen: Vec<bool>,
}

impl<'a> Chosen<'a> {
    fn of(settings: &'a Settings) -> Chosen<'a> {
        let count = settings.catalogue().vocabulary().owners().len();
        Chosen { settings, is_chosen: vec![false; count] }
    }

    fn all(&self) -> &'a [Owner] {
        self.settings.catalogue().vocabulary().owners()
    }

    /// The lab's owner of `O`.
    fn add<O: Options>(&mut self) {
        let owners = self.all().iter().zip(&mut self.is_chosen);
        owners.filter(|(owner, _)| owner.kind.is_empty() && owner.has::<O>()).for_each(|(_, chosen)| *chosen = true);
    }

    fn add_if<O: Options>(&mut self, holds: bool) {
        if holds {
            self.add::<O>();
        }
    }

    /// The owner called `name` of those of a kind.
    fn add_named(&mut self, kind: &str, name: &str) {
        let owners = self.all().iter().zip(&mut self.is_chosen);
        owners.filter(|(owner, _)| owner.kind == kind && owner.name == name).for_each(|(_, chosen)| *chosen = true);
    }

    fn finish(self) -> Vec<&'a Owner> {
        let owners = self.all().iter().zip(&self.is_chosen);
        owners.filter(|(_, chosen)| **chosen).map(|(owner, _)| owner).collect()
    }

    fn interface(&mut self) {
        self.add_named("interface", &self.settings.interface());
        if let Some(inner) = self.settings.inner_description() {
            self.add_named("interface", inner.owner.name);
        }
    }

    fn software(&mut self) {
        self.add_named("application", &self.settings.app());
        self.add::<Application>();
        self.add::<TransmitOptions>();
        self.add::<PoolOptions>();
        self.add::<PoolSize>();
        self.add::<RssOptions>();
        self.add::<Burst>();
    }

    fn traffic(&mut self) {
        let settings = self.settings;
        let arrival = settings.read::<Arrivals>().arrival;
        let (replays, store) = (arrival == Arrival::Replay, settings.app_shape().requests.is_some());
        let recorded = replays && settings.read::<Capture>().replay_timing == Timing::Recorded;
        self.add::<Arrivals>();
        self.add_if::<Rate>(arrival != Arrival::PingPong && !recorded);
        self.add_if::<Bursts>(arrival == Arrival::Bursts);
        self.add_if::<PingPong>(arrival == Arrival::PingPong);
        self.add_if::<Capture>(replays);
        if replays {
            return;
        }
        self.add::<Flows>();
        self.add::<Choices>();
        self.add_if::<Zipf>(settings.read::<Choices>().flow_choice == FlowChoices::Zipf);
        if store {
            let choice = settings.read::<Requests>().kvs_key_choice;
            self.add::<Requests>();
            self.add_if::<KeyZipf>(choice == KeyChoice::Zipf);
            self.add_if::<HotArea>(choice == KeyChoice::HotArea);
            self.add_if::<HotAreaOptions>(choice == KeyChoice::HotArea);
            return;
        }
        let sizes = settings.read::<Sizes>().packet_sizes;
        self.add::<Sizes>();
        self.add_if::<PacketBytes>(matches!(sizes, PacketSizes::Fixed | PacketSizes::Bimodal));
        self.add_if::<Bimodal>(sizes == PacketSizes::Bimodal);
        self.add_if::<Empirical>(sizes == PacketSizes::Empirical);
        self.add::<Shares>();
        let has_target = settings.read::<Shares>().target_share > 0.0;
        self.add_if::<TargetBytes>(has_target);
        self.add_if::<TargetTime>(has_target);
    }

    fn store(&mut self) {
        if self.settings.app_shape().requests.is_some() {
            self.add::<Pairs>();
            self.hot_values();
        }
    }

    fn hot_values(&mut self) {
        let hot = self.settings.app_shape().values_in_nicmem;
        self.add_if::<HotOptions>(hot);
        self.add_if::<HotSketchOptions>(
            hot && self.settings.read::<HotOptions>().kvs_hot_items == HotItemsFrom::Sketch,
        );
        self.add_if::<HotAreaOptions>(hot);
    }

    /// What goes with options of an application.
    fn beside_app(&mut self) {
        let settings = self.settings;
        self.add_if::<Flows>(settings.app_shape().offloads_flows);
        self.add_if::<TargetTime>(settings.app_shape().more_accesses);
        self.store();
    }

    /// What stands between the wire and the interface.
    fn stages(&mut self) {
        self.add::<StageOptions>();
        self.settings.stages().iter().for_each(|name| self.add_named("stage", name));
    }

    fn co_runners(&mut self) {
        let CoRunners { stream_cores, graph_cores, copy } = self.settings.read();
        self.add::<CoRunners>();
        self.add_if::<Copies>(copy != Copying::None);
        self.add_if::<NicmemOptions>(matches!(copy, Copying::HostToNicmem | Copying::NicmemToHost));
        self.add_if::<CoRunnerPlace>(stream_cores + graph_cores > 0);
    }

    fn measurement(&mut self) {
        let replays = self.settings.replays();
        let searches = self.settings.read::<Measurement>().measure == Measure::NoDropRate;
        self.add::<Measurement>();
        self.add_if::<Warmup>(!replays || searches);
        self.add_if::<WindowOptions>(!replays);
        self.add_if::<PrecisionOptions>(!replays && !searches);
        self.add_if::<TimelineOptions>(!searches);
    }

    fn rpcs(&mut self) {
        self.add::<RpcOptions>();
        self.add::<TasOptions>();
        self.add_if::<LinuxOptions>(self.settings.read::<RpcOptions>().uses(Carrier::Linux));
        self.add::<RecordOptions>();
        let layer = self.settings.read::<RecordOptions>().rpc_layer5;
        let (tls, nvme): (TlsOptions, NvmeOptions) = (self.settings.read(), self.settings.read());
        let by_nic = match layer {
            LayerFive::Plain => false,
            LayerFive::Tls => tls.tls_server.is_nic() || tls.tls_clients.is_nic(),
            LayerFive::Nvme => nvme.nvme_clients.is_nic(),
            LayerFive::NvmeTls => tls.tls_clients.is_nic() || tls.tls_server.is_nic(),
        };
        let records: RecordOptions = self.settings.read();
        let has_target = records.rpc_answer_from == AnswerFrom::Storage;
        let storage_tls = has_target && records.rpc_storage_tls;
        self.add_if::<TlsOptions>(layer.is_tls() || storage_tls);
        self.add_if::<NvmeOptions>(layer.is_nvme() || has_target);
        let of_target = nvme.nvme_server.is_nic() || storage_tls && tls.tls_storage.is_nic();
        if by_nic || has_target && of_target {
            self.add_named("stage", L5pKind::NAME);
        }
        self.add_if::<TasnicOptions>(self.settings.read::<RpcOptions>().uses(Carrier::Tasnic));
        if self.settings.read::<RpcOptions>().rpc_server == Carrier::Tasnic {
            self.stages();
        }
        self.add::<TransmitOptions>();
        self.add::<PoolOptions>();
        self.add::<RssOptions>();
        self.link();
        self.add::<Warmup>();
        self.add::<WindowOptions>();
        self.add::<PrecisionOptions>();
    }

    fn storm(&mut self) {
        self.add::<StormOptions>();
        self.add::<TransmitOptions>();
        self.add::<PoolOptions>();
        self.add::<RssOptions>();
        self.add::<LinkOptions>();
        self.add::<SwitchOptions>();
        self.add::<Warmup>();
        self.add::<WindowOptions>();
        self.add::<PrecisionOptions>();
    }

    fn link(&mut self) {
        self.add::<TcpOptions>();
        self.add::<LinkOptions>();
        self.add_if::<SwitchOptions>(self.settings.read::<LinkOptions>().link_gbps.is_some());
    }

    fn systems(&mut self) {
        let workload = self.settings.read::<Run>().workload;
        let initiator = workload == Workload::IscsiInitiator;
        self.add::<SystemOptions>();
        self.add::<Sockets>();
        self.link();
        self.add::<Warmup>();
        self.add::<WindowOptions>();
        self.add::<PrecisionOptions>();
        self.add_if::<Streams>(!initiator);
        self.add_if::<Iscsi>(initiator);
        self.add_if::<Web>(workload == Workload::WebServer);
    }
}

/// Those of a simulated point.
pub(super) fn of_simulation(settings: &Settings) -> Vec<&Owner> {
    let mut chosen = Chosen::of(settings);
    chosen.add::<Run>();
    chosen.add_if::<Cores>(!settings.is_of_rpcs() && !settings.is_of_storm());
    chosen.add::<Clock>();
    chosen.interface();
    if settings.is_of_rpcs() {
        chosen.rpcs();
        return chosen.finish();
    }
    if settings.is_of_storm() {
        chosen.storm();
        return chosen.finish();
    }
    if settings.is_of_whole_systems() {
        chosen.systems();
        return chosen.finish();
    }
    chosen.add::<Nics>();
    chosen.add::<Llc>();
    chosen.software();
    chosen.traffic();
    chosen.beside_app();
    chosen.stages();
    chosen.add_if::<StageProcessor>(!settings.stages().is_empty());
    chosen.co_runners();
    chosen.measurement();
    chosen.finish()
}

/// Those of what arrives at one NIC, whatever that does.
pub(super) fn of_traffic(settings: &Settings) -> Vec<&Owner> {
    let mut chosen = Chosen::of(settings);
    chosen.traffic();
    chosen.finish()
}

/// Those of a live run between real ports.
#[cfg(target_os = "linux")]
pub(crate) fn of_live_run(settings: &Settings) -> Vec<&Owner> {
    let mut chosen = Chosen::of(settings);
    chosen.add::<Run>();
    chosen.add::<Cores>();
    chosen.interface();
    chosen.software();
    chosen.hot_values();
    chosen.stages();
    chosen.add::<TimelineOptions>();
    chosen.finish()
}
