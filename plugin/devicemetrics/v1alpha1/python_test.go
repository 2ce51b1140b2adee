package v1alpha1

import (
	"encoding/base64"
	"flag"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the specification into the Python example")
	os.Exit(m.Run())
}

// The Python example has the specification. `-update` writes it.
func TestPythonExampleHasTheSpecification(t *testing.T) {
	const path, begin, end = "../../../examples/devicemetrics/server.py", "SPECIFICATION = \"\"\"\n", "\"\"\"\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	encoded, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no %s", path, begin)
	}
	want := protodesc.ToFileDescriptorProto(File_plugin_devicemetrics_v1alpha1_devicemetrics_proto)
	if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
		written, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		encoded = wrap(base64.StdEncoding.EncodeToString(written), 96)
		if err := os.WriteFile(path, []byte(before+begin+encoded+end+after), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	got := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(decoded, got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("%s has another specification: run make proto", path)
	}
}

// wrap breaks text into lines.
func wrap(text string, columns int) string {
	var lines strings.Builder
	for len(text) > 0 {
		n := min(columns, len(text))
		lines.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return lines.String()
}
