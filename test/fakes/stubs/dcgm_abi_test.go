package stubs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDCGMFromC runs a client in C over the library's real interface: versions
// of structures, missing arguments, the order of calls, threads.
func TestDCGMFromC(t *testing.T) {
	libraries := Build(t)
	headers, err := headerFolders(".")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "client")
	compiler := exec.Command("gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread",
		"-isystem", headers.Replace("$DCGM"), "-o", program, "testdata/dcgm_client.c", libraries.DCGM)
	if output, err := compiler.CombinedOutput(); err != nil {
		t.Fatalf("compile the client: %v\n%s", err, output)
	}
	node := NewNode(t, 2)
	node.SetNode("dcgm.hang.dcgmGetAllSupportedDevices", "1")
	engine := node.StartHostEngine(t, libraries, "unix://"+filepath.Join(t.TempDir(), "engine"))
	client := exec.Command(program, engine.Address)
	client.Env = append(append(os.Environ(), node.Env()...), "LD_LIBRARY_PATH="+libraries.Dir)
	if output, err := client.CombinedOutput(); err != nil {
		t.Errorf("the client: %v\n%s", err, output)
	}
	if held := engine.Inspect(); held.Groups != 0 || held.Watches != 0 {
		t.Errorf("the engine still holds %+v", held)
	}
}
