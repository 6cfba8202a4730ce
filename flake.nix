{
  description = "Opening books and game indexes from PGN";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "aarch64-darwin" "aarch64-linux" "x86_64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      manifest = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).package;
    in
    {
      packages = each (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = manifest.name;
          version = manifest.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          # The tests need other programs.
          doCheck = false;
          postInstall = ''
            bash packaging/extras $out/bin/polybook extras
            installManPage extras/man/*.1
            installShellCompletion extras/completions/{polybook.bash,_polybook,polybook.fish}
          '';
          meta = {
            description = "Opening books and game indexes from PGN";
            homepage = manifest.repository;
            license = pkgs.lib.licenses.gpl3Plus;
            mainProgram = "polybook";
          };
        };
      });
    };
}
