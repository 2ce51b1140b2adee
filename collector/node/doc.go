// Package node is the node role: who holds which device of this node, and
// what is each claim doing with it?
//
// Facts come in as one struct of values. Step is a pure reducer over them:
// it matches published devices to hardware (match.go), joins claims and pods
// to devices (join.go, listing.go), splits what a device does by the processes
// of those that hold it (split*.go, users.go, use.go), accrues what claims got (meter.go,
// ledger.go), judges how well the devices are (health*.go, xid*.go,
// violations.go) and writes everything down as rows (rows*.go). Runner, in
// run.go, owns the clock and the goroutine, and swaps the snapshot.
package node
