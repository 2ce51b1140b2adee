// Package load puts a load of a known size on one CUDA device: it runs kernels
// whose operations and bytes follow from their code, and measures by CUDA
// events how long the device was busy with them. It changes no setting of the
// device.
package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/cuda"
)

// visible is the variable by which a process limits and orders the devices
// that CUDA shows it.
const visible = "CUDA_VISIBLE_DEVICES"

// nowhere is an address that is never allocated.
const nowhere = 16

// Run generates a load until its duration is over or ctx is done, and reports
// its events. It returns an error if a call of the driver fails, or if one does
// not return within Options.Grace after the end: such a call cannot be stopped,
// and the caller should end the process. If the device is named by its UUID and
// CUDA_VISIBLE_DEVICES is not set, Run sets it: CUDA shows a MIG device to no
// process that does not name it.
func Run(ctx context.Context, o Options, report Reporter) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if _, set := os.LookupEnv(visible); !set && isUUID(o.Device) {
		// CUDA compares the case of letters.
		if err := os.Setenv(visible, o.Device[:4]+strings.ToLower(o.Device[4:])); err != nil {
			return fmt.Errorf("set %s: %w", visible, err)
		}
	}
	library, err := cuda.Open(o.Library)
	if err != nil {
		return fmt.Errorf("--library=%s: %w", o.Library, err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() {
		// The context of the device belongs to one thread, which is not used
		// for anything else afterwards.
		runtime.LockOSThread()
		ended <- run(ctx, stop, library, o, report)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(o.Grace)
	defer grace.Stop()
	select {
	case err := <-ended:
		return err
	case <-grace.C:
		return fmt.Errorf("%s has not returned within %s after the end (%w)", library.Current(), o.Grace, context.Cause(ctx))
	}
}

// session is a load that has begun.
type session struct {
	Options
	report  Reporter
	context *cuda.Context
	device  cuda.Device
	held    memory
	work    work
	began   time.Time
	totals  Totals
}

func run(ctx context.Context, stop context.CancelCauseFunc, library *cuda.Library, o Options, report Reporter) error {
	s := &session{Options: o, report: report}
	if err := s.open(library); err != nil {
		return err
	}
	if s.Kind == Fault {
		return s.fault()
	}
	if s.Duration > 0 {
		defer time.AfterFunc(s.Duration, func() { stop(errors.New("duration")) }).Stop()
	}
	if err := s.repeat(ctx); err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	done := s.progress("done")
	done.Reason = context.Cause(ctx).Error()
	report(done)
	return nil
}

// open finds the device, holds its memory and reports that it is ready.
func (s *session) open(library *cuda.Library) error {
	if err := library.Init(); err != nil {
		return err
	}
	version, err := library.Version()
	if err != nil {
		return err
	}
	devices, err := library.Devices()
	if err != nil {
		return err
	}
	if s.device, err = cuda.Find(devices, s.Device); err != nil {
		return fmt.Errorf("--device: %w", err)
	}
	if s.context, err = library.NewContext(s.device); err != nil {
		return err
	}
	free, total, err := s.context.MemoryInfo()
	if err != nil {
		return err
	}
	if s.Memory > free/2 {
		return fmt.Errorf("--memory=%d: must be at most half of the %d bytes that are free", s.Memory, free)
	}
	s.held.bytes = s.Memory
	if s.held.address, err = s.context.Allocate(s.Memory); err != nil {
		return err
	}
	blocks := uint32(s.device.Multiprocessors * s.BlocksPerSM)
	if s.work, err = newWork(s.Kind, s.context, s.device, s.held, blocks, s.CopyChunk); err != nil {
		return err
	}
	s.began = time.Now()
	s.report(Ready{
		Event: "ready", Time: s.began, PID: os.Getpid(), Kind: s.Kind,
		Device: s.device.Ordinal, UUID: s.device.UUID, Name: s.device.Name, PCIBusID: s.device.PCIBusID,
		Capability: s.device.Capability.String(), CUDAVersion: version,
		SMCount: s.device.Multiprocessors, L2Bytes: s.device.L2Bytes,
		TotalBytes: total, FreeBytes: free, HeldBytes: s.held.bytes,
		Blocks: blocks, Threads: threads, DutyPercent: s.Duty, PeriodSeconds: s.Period.Seconds(),
	})
	return nil
}

// repeat does the work, period by period, until ctx is done.
func (s *session) repeat(ctx context.Context) error {
	if err := s.mark(); err != nil {
		return err
	}
	p := newPace(s.Period, s.Duty)
	reported, start := s.began, s.began
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p.begin()
		if err := s.fill(ctx, p); err != nil {
			return err
		}
		s.totals.Periods++
		now := time.Now()
		if now.Sub(reported) >= s.Interval {
			reported = now
			s.report(s.progress("progress"))
		}
		if start = start.Add(s.Period); start.Before(now) {
			start = now
		}
		timer.Reset(time.Until(start))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// fill does the work of one period. A few rounds are enough to learn how long
// a unit takes.
func (s *session) fill(ctx context.Context, p *pace) error {
	for range 16 {
		if s.work == nil || ctx.Err() != nil {
			return nil
		}
		units, perLaunch := p.next()
		if units == 0 {
			return nil
		}
		var more Totals
		took, err := s.context.Time(func() error {
			var err error
			more, err = s.work.submit(units, perLaunch)
			return err
		})
		if err != nil {
			return err
		}
		p.done(units, took)
		more.Busy = took.Seconds()
		if s.totals.Kernels+s.totals.Copies == 0 {
			if err := s.verify(); err != nil {
				return err
			}
		}
		s.totals.add(more)
	}
	return nil
}

const unwritten = 0xffffffff

// mark writes a word that no work writes to where the work writes first, and
// verify fails if it is there still. The source of the memory kernel, too, gets
// another word.
func (s *session) mark() error {
	if s.work == nil {
		return nil
	}
	word, err := s.context.AllocateHost(8)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(word, unwritten)
	binary.LittleEndian.PutUint32(word[4:], 1)
	for _, write := range []struct {
		to   cuda.Address
		from []byte
	}{{s.held.address, word[4:]}, {s.work.result(), word[:4]}} {
		if err := s.context.CopyToDevice(write.to, write.from); err != nil {
			return err
		}
	}
	if err := s.context.Synchronize(); err != nil {
		return err
	}
	return s.context.FreeHost(word)
}

func (s *session) verify() error {
	word, err := s.context.AllocateHost(4)
	if err != nil {
		return err
	}
	if err := s.context.CopyFromDevice(word, s.work.result()); err != nil {
		return err
	}
	if err := s.context.Synchronize(); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(word) == unwritten {
		return fmt.Errorf("the work %s has written no result to the device's memory", s.Kind)
	}
	return s.context.FreeHost(word)
}

// fault provokes an error of the device. The process cannot use the device
// afterwards.
func (s *session) fault() error {
	k, err := kernel(s.context, faultPTX, "gpukit_fault")
	if err != nil {
		return err
	}
	if err := k.Launch(1, 1, nowhere); err != nil {
		return err
	}
	s.totals.Kernels++
	err = s.context.Synchronize()
	var driver *cuda.Error
	if !errors.As(err, &driver) {
		return fmt.Errorf("a kernel wrote to address %d without an error", nowhere)
	}
	event := s.progress("faulted")
	event.Code, event.Name, event.Call = driver.Code, driver.Name, driver.Call
	s.report(event)
	return nil
}

func (s *session) progress(event string) Progress {
	now := time.Now()
	return Progress{Event: event, Time: now, Elapsed: now.Sub(s.began).Seconds(), Totals: s.totals, HeldBytes: s.held.bytes}
}

// close gives back what the process has of the device.
func (s *session) close() error {
	if c, ok := s.work.(*copies); ok {
		if err := s.context.FreeHost(c.host); err != nil {
			return err
		}
	}
	if err := s.context.Free(s.held.address); err != nil {
		return err
	}
	return s.context.Destroy()
}
