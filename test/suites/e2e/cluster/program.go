package cluster

import "context"

// StartProgram starts any program in addition to the cluster's own, as the
// process of that name, and waits until the URL answers 200. It ends with the
// cluster.
func (c *Cluster) StartProgram(ctx context.Context, name, program string, args []string, url string) (*Process, error) {
	p := &Process{name: name, program: program, args: args, ready: answers(url)}
	return p, c.launch(ctx, p)
}

// EndProgram kills such a process and forgets it, so that the name can be used
// again.
func (c *Cluster) EndProgram(name string) error {
	p := c.Process(name)
	if p == nil {
		return nil
	}
	err := p.Kill()
	c.forget(name)
	return err
}
