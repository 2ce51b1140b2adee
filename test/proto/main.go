// Proto writes the Go code of the project's proto files beside them.
//
//	go run . [-root DIR] [-check]
//
// With -check it writes nothing and exits with status 1 if a file differs from
// what would be written.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	root := flag.String("root", "../..", "`directory` of the root module")
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "proto:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	for _, path := range []string{
		"plugin/devicemetrics/v1alpha1/devicemetrics.proto",
		"collector/device/tpu/runtimemetrics/runtimemetrics.proto",
	} {
		if err := write(root, path, check); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// write writes or compares the code of one file.
func write(root, path string, check bool) error {
	request, err := compile(root, path)
	if err != nil {
		return err
	}
	for _, tool := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		files, err := generate(tool, request)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := put(filepath.Join(root, file.GetName()), []byte(file.GetContent()), check); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile returns the request of a code generator for one file, whose path is
// relative to root.
func compile(root, path string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), path)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{path},
		Parameter:      proto.String("paths=source_relative"),
	}
	for _, file := range files {
		request.ProtoFile = withImports(request.ProtoFile, file)
	}
	return request, nil
}

// withImports appends a file after the files that it imports, each once.
func withImports(list []*descriptorpb.FileDescriptorProto, file protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	for _, listed := range list {
		if listed.GetName() == file.Path() {
			return list
		}
	}
	for i := range file.Imports().Len() {
		list = withImports(list, file.Imports().Get(i))
	}
	return append(list, protoutil.ProtoFromFileDescriptor(file))
}

// generate runs a code generator that go.mod names as a tool.
func generate(tool string, request *pluginpb.CodeGeneratorRequest) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	command := exec.Command("go", "tool", tool)
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	if response.Error != nil {
		return nil, fmt.Errorf("%s: %w", tool, errors.New(response.GetError()))
	}
	return response.File, nil
}

func put(path string, content []byte, check bool) error {
	if !check {
		return os.WriteFile(path, content, 0o644)
	}
	current, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(current, content) {
		return fmt.Errorf("%s is outdated: run make proto", path)
	}
	return nil
}
