//! What a hypervisor asks for (vhost-user protocol), one request at a time.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::event::epoll;
use vhost::VhostUserMemoryRegionBase;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight, VhostUserLog,
    VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestMemoryRegion, GuestRegionMmap, MmapRegion};

use super::super::super::foreign::{Watch, check_file};
use super::{Guest, Memory, OFFERED, PROTOCOL, Part};

fn refused<T>() -> Result<T> {
    Err(Error::InvalidOperation("not offered"))
}

fn system(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::ReqHandlerError(io::Error::other(cause))
}

impl VhostUserBackendReqHandlerMut for Guest {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.leave();
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        self.leave();
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(OFFERED)
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !OFFERED != 0 {
            return Err(Error::InvalidParam);
        }
        self.features = features;
        self.has_protocol = features & PROTOCOL != 0;
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        parts: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        let mut memory = Memory::default();
        let mut regions = Vec::new();
        for (part, file) in parts.iter().zip(files) {
            check_file(file.as_fd(), part.mmap_offset, part.memory_size).map_err(system)?;
            let bytes = usize::try_from(part.memory_size).map_err(system)?;
            let mapping = MmapRegion::from_file(FileOffset::new(file, part.mmap_offset), bytes).map_err(system)?;
            // SAFETY: the mapping is new and lies in `memory` with its watch, which goes first; the crate
            // uses it by raw copies and atomics only.
            let watch = unsafe { Watch::over(mapping.as_ptr() as usize, mapping.size()) };
            memory.watches.push(watch.map_err(system)?);
            let region = GuestRegionMmap::new(mapping, GuestAddress(part.guest_phys_addr));
            regions.push(region.ok_or(Error::InvalidParam)?);
            memory.parts.push(Part { user: part.user_addr, guest: part.guest_phys_addr, bytes: part.memory_size });
        }
        regions.sort_by_key(|region| region.start_addr().0);
        memory.mapped = GuestMemoryMmap::from_regions(regions).map_err(system)?;
        self.memory = memory;
        // Queues that lay in what was there before are looked at again.
        for number in 0..self.queues.len() {
            if self.queues[number].is_on() {
                self.bases[number] = self.queues[number].stop();
                self.start(number)?;
            }
        }
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, entries: u32) -> Result<()> {
        if self.queue(index)?.set_size(entries) { Ok(()) } else { Err(Error::InvalidParam) }
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let places = [descriptors, available, used].map(|user| self.memory.guest_address(user));
        let [Some(descriptors), Some(available), Some(used)] = places else {
            return Err(Error::InvalidParam);
        };
        if self.queue(index)?.set_place(descriptors, available, used) { Ok(()) } else { Err(Error::InvalidParam) }
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        self.queue(index)?;
        self.bases[index as usize] = base as u16;
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let base = self.queue(index)?.stop();
        self.bases[index as usize] = base;
        self.forget_kick(index as usize);
        Ok(VhostUserVringState::new(index, base.into()))
    }

    fn set_vring_kick(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let number = usize::from(index);
        self.queue(index.into())?;
        self.forget_kick(number);
        if let Some(kick) = file {
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            // Those of queues that the guest receives by say that there are buffers again: nobody waits.
            if number % 2 == 1 {
                epoll::add(&*self.wakes, &kick, epoll::EventData::new_u64(0), flags).map_err(system)?;
            }
            self.queues[number].kick = Some(kick);
        }
        self.start(number)
    }

    fn set_vring_call(&mut self, index: u8, file: Option<File>) -> Result<()> {
        if let Some(file) = &file {
            // A guest that never reads it must not stop us.
            rustix::io::ioctl_fionbio(file, true).map_err(system)?;
        }
        self.queue(index.into())?.call = file;
        Ok(())
    }

    fn set_vring_err(&mut self, _index: u8, _file: Option<File>) -> Result<()> {
        Ok(())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    /// Hypervisors count pairs here, for network adapters.
    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.pairs.into())
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        self.queue(index)?.is_enabled = enable;
        Ok(())
    }

    fn get_config(&mut self, _offset: u32, _size: u32, _flags: VhostUserConfigFlags) -> Result<Vec<u8>> {
        refused()
    }

    fn set_config(&mut self, _offset: u32, _bytes: &[u8], _flags: VhostUserConfigFlags) -> Result<()> {
        refused()
    }

    fn set_gpu_socket(&mut self, _backend: GpuBackend) -> Result<()> {
        refused()
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        refused()
    }

    fn get_inflight_fd(&mut self, _inflight: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        refused()
    }

    fn set_inflight_fd(&mut self, _inflight: &VhostUserInflight, _file: File) -> Result<()> {
        refused()
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        refused()
    }

    fn add_mem_region(
        &mut self,
        _region: &VhostUserSingleMemoryRegion,
        _file: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        refused()
    }

    fn remove_mem_region(&mut self, _region: &VhostUserSingleMemoryRegion) -> Result<()> {
        refused()
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _file: File,
    ) -> Result<Option<File>> {
        refused()
    }

    fn check_device_state(&mut self) -> Result<()> {
        refused()
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        refused()
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        refused()
    }
}
