// csi-registrar tells the kubelet where a CSI driver listens, by the kubelet's plugin registration:
// `csi-registrar DRIVER DRIVER_SOCKET REGISTRATION_SOCKET`, paths as the kubelet sees them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type registrar struct {
	registration.UnimplementedRegistrationServer
	driver, socket string
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              r.driver,
		Endpoint:          r.socket,
		SupportedVersions: []string{"1.0.0"}, // of CSI, not of the driver
	}, nil
}

func (r *registrar) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if status.PluginRegistered {
		fmt.Println("registered", r.driver)
	} else {
		fmt.Println("not registered:", status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func run(driver, socket, own string) error {
	// A socket left by an earlier process would keep the address in use.
	if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, &registrar{driver: driver, socket: socket})
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ended, server.Stop) // closes the listener, which removes the socket: the kubelet unregisters
	return server.Serve(listener)
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: csi-registrar DRIVER DRIVER_SOCKET REGISTRATION_SOCKET")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
