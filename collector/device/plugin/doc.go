// Package plugin reads device metrics that DRA drivers serve on sockets of their
// own, as specified in plugin/devicemetrics/v1alpha1: one socket <driver>.sock in a
// folder for each driver.
//
// Each socket has one connection with a goroutine of its own, which reads the
// stream and decodes it. A read of the source takes the newest report: it never
// waits for a driver that is connected. Drivers fail independently of each other.
//
// A driver is not trusted. Each message is checked completely before anything of it
// is used, and its size, rate and contents are limited. The name of the socket's
// file is the name of the driver: a server cannot describe devices of another one.
package plugin
