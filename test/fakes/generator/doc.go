// Package generator makes clusters of any size and plays the lives of claims in
// them, for measurements: its objects are of the shape and the weight that
// NVIDIA's driver, the scheduler, the controllers and the kubelet give them.
package generator
